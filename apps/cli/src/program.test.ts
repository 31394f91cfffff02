/** The command line in this process, with recording pens. test/flow/cli.test.ts tests it against a platform. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { CommanderError } from 'commander'
import { expect, test } from 'vitest'
import type { Context, Environment } from './context.ts'
import { UsageError } from './exit-code.ts'
import { createProgram } from './program.ts'
import { createPen } from './terminal/pen.ts'

const someTask = '00000000-0000-7000-8000-000000000000'

test.each([
  ['no command that exists', ['dance'], 'unknown command'],
  ['a missing argument', ['run'], 'missing required argument'],
  ['an unknown option', ['agents', '--loud'], 'unknown option'],
  ['parameters that are not JSON', ['run', 'echo', '--params', '{x'], 'Not valid JSON'],
  ['an invalid id', ['show', '42'], 'UUID'],
  ['an invalid cursor', ['tail', someTask, '--after', 'x'], 'A cursor must be'],
  ['two formats at once', ['tail', someTask, '--json', '--raw'], 'cannot be used with'],
  ['a format that does not exist', ['tail', someTask, '--format', 'xml'], 'Allowed choices are ai-sdk, agentex'],
  ['an unknown status', ['tasks', '--status', 'tired'], 'Allowed choices'],
  ['a page that is too long', ['tasks', '--limit', '101'], 'from 1 to 100'],
  ['an invalid pair', ['tasks', '--metadata', 'user'], 'key=value'],
  ['an invalid time', ['keys', 'create', '--expires', 'soon'], '90d'],
  ['a file that is not there', ['worker', 'nowhere.ts'], 'No such file'],
  ['a file to start that is not there', ['start', 'nowhere.ts'], 'No such file'],
])('%s is a matter of usage, in a sentence on stderr', async (_, args, sentence) => {
  const { error, out, err } = await run(args)
  expect(error).toBeInstanceOf(CommanderError)
  expect([out, err.split('\n').length <= 3, err.includes(sentence)]).toEqual(['', true, true])
})

test('an invalid URL is a usage error, too', async () => {
  expect((await run(['agents', '--url', 'localhost:4000'])).error).toBeInstanceOf(UsageError)
})

test.each(['70000', 'nowhere.ts'])('so is %s after --inspect, which is neither a port nor a file', async word => {
  expect((await run(['dev', '--inspect', word])).error).toBeInstanceOf(UsageError)
})

test('every command explains itself', async () => {
  const { out } = await run(['--help'])
  for (const command of ['dev', 'run', 'tail', 'tasks', 'show', 'cancel', 'agents', 'doctor', 'init', 'worker', 'migrate', 'keys'])
    expect(out).toContain(`  ${command} `)
})

test('--url and --key count before the environment', async () => {
  const asked: string[] = []
  await withServer(
    (request, response) => {
      asked.push(request.headers.authorization ?? 'nothing')
      response.setHeader('content-type', 'application/json').end('{"data":[]}')
    },
    async url => {
      await run(['agents', '--url', url, '--key', 'a'], { RIVULET_URL: 'http://127.0.0.1:2', RIVULET_KEY: 'b' })
      await run(['agents'], { RIVULET_URL: `${url}/`, RIVULET_KEY: 'b' })
      await run(['agents', '--url', url], { RIVULET_KEY: '' })
    },
  )
  expect(asked).toEqual(['Bearer a', 'Bearer b', 'nothing'])
})

test.each([
  [[], /^id .*\n00000000-0000-7000-8000-000000000000 {2}echo/],
  [['--json'], /^\{"data":\[\{"id":"00000000-0000-7000-8000-000000000000"/],
])('tasks %s searches on after an empty page that is not the last', async (options, output) => {
  const at = '2026-01-01T00:00:00.000Z'
  const fields = { agent: 'echo', status: 'running', metadata: {}, params: {}, createdAt: at, updatedAt: at }
  const found = { id: someTask, ...fields, turns: 1, ranMs: 0, tokens: 0 }
  const pages: Record<string, object> = {
    '': { data: [], nextCursor: 'c5' },
    c5: { data: [], nextCursor: 'c3' },
    c3: { data: [found], nextCursor: null },
  }
  await withServer(
    ({ url = '' }, response) => {
      const cursor = new URL(url, 'http://localhost').searchParams.get('cursor') ?? ''
      response.setHeader('content-type', 'application/json').end(JSON.stringify(pages[cursor]))
    },
    async url => expect((await run(['tasks', '--q', 'needle', '--url', url, ...options])).out).toMatch(output),
  )
})

async function withServer(onRequest: RequestListener, use: (url: string) => Promise<void>): Promise<void> {
  const server = createServer(onRequest).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  try {
    await use(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

async function run(args: string[], environment: Environment = {}): Promise<{ error: unknown; out: string; err: string }> {
  const said = { out: '', err: '' }
  const context: Context = {
    environment,
    out: createPen({ write: (text: string) => (said.out += text) }, {}),
    err: createPen({ write: (text: string) => (said.err += text) }, {}),
    readInput: async () => '',
    prompt: async () => null,
    onLine: () => () => {},
    onInterrupt: () => () => {},
    onStop: () => {},
    exitWith: () => {},
  }
  const error = await createProgram(context, '0')
    .parseAsync(args, { from: 'user' })
    .then(
      () => null,
      (reason: unknown) => reason,
    )
  return { error, ...said }
}
