/**
 * Bad input, over a raw socket: each row of docs/bad-input.md gets the documented response, in the one shape of an error.
 */
import { createClient as connect } from '@rivulet/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { repeat, rest, say, scripted } from '../support/agents/scripts.ts'
import { holdingsOf, measuredOptions, untilNoMoreIsHeld } from '../support/fuzz/holdings.ts'
import { descriptionOf, fuzzHttp, tryRequests } from '../support/fuzz/http.ts'
import { fuzzLogs } from '../support/fuzz/log.ts'
import { faultsInLines } from '../support/fuzz/log-lines.ts'
import { markedRequests } from '../support/fuzz/marked-requests.ts'
import { openTestKeyring, pepper, type TestKeyring } from '../support/platform/keyring.ts'
import { type ApiProcess, type Platform, startPlatform } from '../support/platform/platform.ts'
import { type BadInput, type BadInputWorld, badInputs } from '../support/texts/bad-inputs.ts'
import { shapeFaults } from '../support/texts/error-shape.ts'
import { type RawOutcome, sendRaw } from '../support/viewers/raw-http.ts'

const key = 'the-root-key-of-this-test'
const workerKey = 'the-worker-key-of-this-test'
const env = { RIVULET_KEY: key, RIVULET_WORKER_KEY: workerKey, KEY_PEPPER: pepper, LOG_LEVEL: 'trace', ...measuredOptions }

let platform: Platform
let keyring: TestKeyring
let world: BadInputWorld
/** They take ten seconds of doing nothing: they begin first and are looked at last. */
let slow: Record<'headers' | 'body', Promise<RawOutcome & { ms: number }>>

beforeAll(async () => {
  platform = await startPlatform({ env })
  keyring = openTestKeyring(platform.databaseUrl)
  slow = {
    headers: timed('POST /v1/tasks HTTP/1.1\r\nhost: a\r\nx-slow: '),
    body: timed(
      `POST /v1/tasks HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{`,
    ),
  }
  const client = connect({ url: platform.url, key })
  await platform.client.post('/internal/hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] }, bearer(workerKey))
  const [mine, theirs] = [await client.tasks.create({ agent: 'echo', input: 'a' }), await foreignTask()]
  await mine.result()
  const readKey = (await keyring.create({ tenant: 'default', scopes: ['tasks:read'] })).key
  world = { key, readKey, task: mine.id, foreignTask: theirs }
})
afterAll(async () => {
  await keyring.close()
  await platform.close()
})

async function foreignTask(): Promise<string> {
  const other = await keyring.create({ tenant: 'rival', scopes: ['admin'] })
  return (await connect({ url: platform.url, key: other.key }).tasks.create({ agent: 'idle' })).id
}

async function timed(bytes: string): Promise<RawOutcome & { ms: number }> {
  const since = performance.now()
  const outcome = await sendRaw(platform.url, [bytes], { untilClosed: true })
  return { ...outcome, ms: performance.now() - since }
}

const bearer = (text: string) => ({ authorization: `Bearer ${text}` })

describe.each([...new Set(badInputs.map(({ row }) => row))])('row %i', row => {
  test.each(badInputs.filter(input => input.row === row).map(input => [input.input.slice(0, 100), input] as const))(
    '%s',
    async (_, input) => {
      const outcome = await sendRaw(platform.url, input.send(world), { untilClosed: true })
      expectReply(outcome, input)
    },
  )
})

function expectReply({ replies, isClosed }: RawOutcome, { status, code, closes, headers = {}, says }: BadInput): void {
  expect(replies.map(reply => [reply.status, codeIn(reply.body)])).toEqual([[status, code]])
  const [reply] = replies
  if (!reply) return
  if (closes) expect([isClosed, reply.headers.connection]).toEqual([true, 'close'])
  for (const [name, value] of Object.entries(headers)) expect(reply.headers[name]).toMatch(value)
  if (says) expect(reply.body).toMatch(says)
  if (code !== null) expect(shapeFaults(reply)).toEqual([])
}

function codeIn(body: string): string | null {
  return (JSON.parse(body) as { error?: { code: string } }).error?.code ?? null
}

test('a call of MCP gets an error of JSON-RPC for a tool whose name no agent can have', async () => {
  const params = { name: 'No Agent!', arguments: { message: 'a' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const response = await fetch(`${platform.url}/mcp`, {
    method: 'POST',
    headers: { ...bearer(key), 'content-type': 'application/json' },
    body,
  })
  const reply = (await response.json()) as { error: { code: number; message: string } }
  expect([response.status, reply.error.code]).toEqual([200, -32602])
  expect(reply.error.message).toMatch(/agent/)
})

describe('random input', () => {
  const keys = { client: key, worker: workerKey }
  const api = () => platform.apis[0] as ApiProcess

  test('whatever is said in any path, query, header or field of any route: no error and no log says it back', async () => {
    const all = markedRequests(await descriptionOf(api().url), keys)
    const { faults, requests } = await tryRequests(api().url, keys, all, all.length)
    expect(requests).toBeGreaterThan(400)
    expect(faults).toEqual([])
    expect(faultsInLines(api().lines)).toEqual([])
  })

  test('requests at random get no 5xx and errors of the one shape; the process holds no more than before', async () => {
    await fuzzHttp(api().url, keys, 50)
    const before = await holdingsOf(api(), key)
    const { faults, statuses } = await fuzzHttp(api().url, keys, 250)
    expect(faults).toEqual([])
    expect(faultsInLines(api().lines)).toEqual([])
    expect(Object.keys(statuses).length).toBeGreaterThan(6)
    await untilNoMoreIsHeld(api(), key, before, 4_000_000)
  })

  test('garbage in logs and on their channels stops no stream, and no viewer receives it', async () => {
    const client = connect({ url: api().url, key })
    const beside = await client.tasks.create(scripted([repeat(60, say(0, 'word '), rest(20))]) as { agent: string })
    const heard = beside.result()
    expect(await fuzzLogs(platform, api(), keys, 200)).toEqual([])
    expect(faultsInLines(api().lines)).toEqual([])
    expect(await heard).toMatchObject({ text: 'word '.repeat(60) })
  })
})

test.each(['headers', 'body'] as const)('a request whose %s do not come is given up on after ten seconds', async part => {
  const { replies, isClosed, ms } = await slow[part]
  expect([replies.map(({ status, body }) => [status, codeIn(body)]), isClosed]).toEqual([[[408, 'request_timeout']], true])
  expect(replies.flatMap(shapeFaults)).toEqual([])
  expect(replies[0]?.body).toContain('did not arrive within 10000 ms')
  expect(ms).toBeGreaterThan(9_000)
  expect(ms).toBeLessThan(20_000)
})
