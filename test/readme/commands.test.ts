/** What the README tells a newcomer to type, typed: `npm start`, then every curl, in the order in which they stand there. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { applyEvent, type Cursor, emptyState, eventSchema, messagesOf, restoreState, wireEventSchema } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { commandsOf } from '../rules/documented-commands.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const curls = commandsOf(readFileSync(join(root, 'README.md'), 'utf8')).filter(command => command.includes('curl '))
const hasCurl = spawnSync('curl', ['--version']).status === 0

const dataDir = mkdtempSync(join(tmpdir(), 'rivulet-readme-'))
let output = ''
let url = ''
let npmStart: ReturnType<typeof spawn>

beforeAll(async () => {
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  // Its own group, so that the whole of it can be sent what Ctrl-C sends.
  const env = { ...process.env, PORT: String(port), DATA_DIR: dataDir, REDIS_URL: '', DATABASE_URL: '' }
  npmStart = spawn('npm', ['start'], { cwd: root, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [npmStart.stdout, npmStart.stderr]) stream?.on('data', collect)
  await vi.waitFor(() => expect(output).toContain('Rivulet is ready'), { timeout: 60_000 })
})

function collect(bytes: Buffer): void {
  output += bytes
}

afterAll(() => rmSync(dataDir, { recursive: true, force: true }))

test('npm start says which engines it uses, and how to try it', () => {
  expect(output).toMatch(/redis +(redis|valkey) .*\n/)
  expect(output).toMatch(/postgres +postgres .*\n/)
  expect(output).toContain(`curl -N ${url}/v1/tasks`)
})

test.skipIf(!hasCurl)('each curl of the README does what it says (skipped where there is no curl)', () => {
  expect(curls.length).toBeGreaterThan(7)
  const answers = runInOneShell(curls)
  const [streamed, , fromStart, afterCursor, messages, turn, canceled, retried] = answers
  expect(wordsIn(streamed)).toBe('hello, wide world')
  expect(fromStart).toMatch(/event: turn.queued[\s\S]*event: turn.finished[\s\S]*event: end/)
  expect(afterCursor).not.toContain('id: 2-1\n')
  expect(afterCursor).toContain('id: 2-2\n')
  expect(JSON.parse(messages ?? '').data.map((message: { content: { text: string } }) => message.content.text)).toEqual([
    'hello again',
    'hello again',
  ])
  expect(JSON.parse(turn ?? '').turn).toMatchObject({ number: 2, status: 'queued' })
  expect(JSON.parse(canceled ?? '').task.status).toMatch(/canceled|completed/)
  expect(retried).toMatch(/first try[\s\S]*"attempt":2[\s\S]*second try[\s\S]*event: end/)
})

test('what Ctrl-C sends stops everything, cleanly', async () => {
  process.kill(-(npmStart.pid ?? 0), 'SIGINT')
  await once(npmStart, 'exit')
  expect(output).toContain('stopping')
  expect(output).not.toContain('starting it again')
  await expect(fetch(`${url}/healthz`)).rejects.toThrow()
})

function runInOneShell(commands: string[]): string[] {
  const mark = '\n=====\n'
  const script = commands
    .map(command => `${command.replaceAll('http://127.0.0.1:4000', url)}\nprintf '${mark.replaceAll('\n', '\\n')}'`)
    .join('\n')
  const { stdout, status } = spawnSync('bash', ['-c', script], { encoding: 'utf8', timeout: 50_000 })
  expect(status).toBe(0)
  return stdout.split(mark).slice(0, -1)
}

/** What a viewer of this stream reads in the agent's message. */
function wordsIn(stream = ''): string {
  let state = emptyState
  for (const frame of stream.split('\n\n')) {
    const [, cursor, data] = /^id: (\S+)\nevent: \S+\ndata: (.*)$/.exec(frame) ?? []
    if (!cursor || !data) continue
    const event = JSON.parse(data)
    const snapshot = wireEventSchema.safeParse(event).data
    if (snapshot?.type === 'snapshot') state = restoreState(cursor as Cursor, { ...snapshot, status: snapshot.task.status })
    else if (!snapshot) state = applyEvent(state, eventSchema.parse(event), cursor as Cursor)
  }
  const said = messagesOf(state).at(-1)?.content
  return said?.type === 'text' ? said.text : ''
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
