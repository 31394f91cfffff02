/** The programs in the document about other protocols type-check with the SDKs that they are for, and do what the document says. */
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { typeErrorsIn } from '../support/texts/type-errors.ts'
import { payerOf } from './asking-agents.ts'
import { printedBy } from './printed.ts'
import { ShownPrograms } from './shown-programs.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }
const keys = { key: env.RIVULET_WORKER_KEY, callerKey: env.RIVULET_KEY }
const assistant = defineAgent('assistant', async turn => void (await turn.send('Much is new.')))
const page = new ShownPrograms('dialects.md')

test('every program of docs/dialects.md type-checks', () => {
  const { programs } = page
  expect(programs.length).toBeGreaterThan(3)
  expect(typeErrorsIn(programs, 'test/sdks')).toBe('')
  const [first = { language: 'ts', text: '' }] = programs
  expect(typeErrorsIn([{ ...first, text: first.text.replace('.responses.stream(', '.responses.shout(') }], 'test/sdks')).toContain('shout')
})

describe('a program of docs/dialects.md', () => {
  let platform: Platform

  beforeAll(async () => {
    vi.stubEnv('RIVULET_KEY', env.RIVULET_KEY)
    platform = await startPlatform({ apis: 1, workers: 0, env })
  })
  afterAll(async () => {
    vi.unstubAllEnvs()
    await platform?.close()
    page.close()
  })

  test.each([
    ['of OpenAI', 'client.responses.stream(', 'Much is new.Much is new.'],
    ['that approves', "'mcp_approval_request'", 'Done.'],
    ['of AG-UI', 'RivuletAgent', 'Much is new.'],
    ['of A2A', 'ClientFactory', 'Much is new.'],
    ['of MCP', 'StreamableHTTPClientTransport', 'Much is new.'],
  ])('%s runs', async (_, mark, said) => {
    await page.loadPackages(mark)
    await startOwnWorker(platform, [assistant, { ...payerOf(12), name: 'support' }], keys)
    expect(await printedBy(() => page.load(mark, platform.url))).toContain(said)
  })

  test('of CopilotKit serves the page', async () => {
    await startOwnWorker(platform, [assistant], keys)
    const { POST } = (await page.load('createCopilotRuntimeHandler', platform.url)) as { POST: (request: Request) => Promise<Response> }
    const response = await POST(new Request('http://page.test/api/copilotkit/info'))
    expect([response.status, await response.json()]).toMatchObject([200, { agents: { assistant: {} } }])
  })
})
