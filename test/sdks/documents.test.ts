/** The programs in the document about other protocols type-check with the SDKs that they are for, and do what the document says. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { blocksOf } from '../support/texts/fenced-blocks.ts'
import { typeErrorsIn } from '../support/texts/type-errors.ts'
import { payerOf } from './asking-agents.ts'

const page = readFileSync(new URL('../../docs/dialects.md', import.meta.url), 'utf8')
const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }
const keys = { key: env.RIVULET_WORKER_KEY, callerKey: env.RIVULET_KEY }
const assistant = defineAgent('assistant', async turn => void (await turn.send('Much is new.')))
const programs = blocksOf(page).filter(({ language }) => language === 'ts')

test('the chat of docs/sdks.md type-checks with the AI SDK', () => {
  const blocks = blocksOf(readFileSync(new URL('../../docs/sdks.md', import.meta.url), 'utf8'))
  const chats = blocks.filter(({ text }) => text.includes('@rivulet/client/ai-sdk'))
  expect([chats.length, typeErrorsIn(chats, 'test/sdks')]).toEqual([1, ''])
})

test('every program of docs/dialects.md type-checks', () => {
  expect(programs.length).toBeGreaterThan(3)
  expect(typeErrorsIn(programs, 'test/sdks')).toBe('')
  const [first = { language: 'ts', text: '' }] = programs
  expect(typeErrorsIn([{ ...first, text: first.text.replace('.responses.stream(', '.responses.shout(') }], 'test/sdks')).toContain('shout')
})

describe('a program of docs/dialects.md', () => {
  /** Beside the SDKs, which the programs import. */
  const base = fileURLToPath(new URL('.rivulet/', import.meta.url))
  let platform: Platform
  let folder = ''

  beforeAll(async () => {
    mkdirSync(base, { recursive: true })
    folder = mkdtempSync(join(base, 'programs-'))
    vi.stubEnv('RIVULET_KEY', env.RIVULET_KEY)
    platform = await startPlatform({ apis: 1, workers: 0, env })
  })
  afterAll(async () => {
    vi.unstubAllEnvs()
    await platform?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test.each([
    ['of OpenAI', 'client.responses.stream(', 'Much is new.Much is new.'],
    ['that approves', 'mcp_approval_request', 'Done.'],
    ['of AG-UI', 'RivuletAgent', 'Much is new.'],
    ['of A2A', 'ClientFactory', 'Much is new.'],
    ['of MCP', 'StreamableHTTPClientTransport', 'Much is new.'],
  ])('%s runs', async (_, mark, said) => {
    await loadPackages(mark)
    await startOwnWorker(platform, [assistant, { ...payerOf(12), name: 'support' }], keys)
    const written = vi.spyOn(process.stdout, 'write').mockImplementation(() => true)
    const logged = vi.spyOn(console, 'log').mockImplementation(() => {})
    onTestFinished(() => void vi.restoreAllMocks())
    await load(mark)
    const texts = [...written.mock.calls, ...logged.mock.calls].flatMap(values => values.map(value => textOf(value)))
    expect(texts.join('')).toContain(said)
  })

  test('of CopilotKit serves the page', async () => {
    await startOwnWorker(platform, [assistant], keys)
    const { POST } = (await load('createCopilotRuntimeHandler')) as { POST: (request: Request) => Promise<Response> }
    const response = await POST(new Request('http://page.test/api/copilotkit/info'))
    expect([response.status, await response.json()]).toMatchObject([200, { agents: { assistant: {} } }])
  })

  /** Before any request, because to load an SDK can block this process for longer than the API keeps an idle connection. */
  async function loadPackages(mark: string): Promise<void> {
    for (const [, name] of programWith(mark)?.text.matchAll(/^import .* from '([^']+)'/gm) ?? []) await import(name ?? '')
  }

  function programWith(mark: string) {
    return programs.find(({ text }) => text.includes(mark))
  }

  async function load(mark: string): Promise<object> {
    const program = programWith(mark)
    expect(program?.text).toContain('http://127.0.0.1:4000')
    const file = join(folder, `${mark.replace(/\W/g, '')}.ts`)
    writeFileSync(file, program?.text.replaceAll('http://127.0.0.1:4000', platform.urls[0] ?? '') ?? '')
    return import(file)
  }
})

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : inspect(value, { depth: 10 })
}
