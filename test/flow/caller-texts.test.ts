/** JSON that a caller sends as a text within a body, as OpenAI's and AG-UI's clients do: it has the limits of a body, and never ends in a 500. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { createClient, type ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

let platform: Platform
/** A task whose turn waits for a tool, and for a form. */
let task: string
let tool: string
let form: string
beforeAll(async () => {
  platform = await startPlatform()
  task = await waitingTask()
  tool = await addWait(task, 'tool')
  form = await addWait(task, 'form')
})
afterAll(() => platform.close())

async function waitingTask(): Promise<string> {
  const client = createClient(() => platform.url)
  const { id } = (await client.createTask({ agent: 'scripted', params: { steps: [{ ask: { name: 'go', holdMs: 0 } }] } })).task
  await until('the turn asks', async () => (await client.detail(id)).task.status === 'waiting')
  return id
}

async function addWait(of: string, kind: string): Promise<string> {
  const id = randomUUID()
  await platform.pg.query(
    `insert into waits (id, task, tenant, turn, number, agent, name, kind, request, metadata, status, expires_at)
     select $2, task, tenant, id, number, 'scripted', $3, $3, $4, '{}', 'open', now() + interval '1 hour' from turns where task = $1`,
    [of, id, kind, JSON.stringify({ title: 'Run it', actions: ['accept', 'decline'] })],
  )
  return id
}

const texts = [
  ['300 kB', JSON.stringify('x'.repeat(300_000)), 'validation_failed'],
  ['NUL', '{"a":"\\u0000"}', 'invalid_characters'],
  ['half of a surrogate pair', '{"a":"\\ud800"}', 'invalid_characters'],
  ['a forbidden key', '{"__proto__":{"a":1}}', 'forbidden_key'],
  ['5,000 brackets', '['.repeat(5_000) + ']'.repeat(5_000), 'json_too_deep'],
  ['a number that is too large', '1e999', 'validation_failed'],
] as const

/** In OpenAI's words, as in ours, the code is that of the error. */
async function codeOf(path: string, body: object): Promise<unknown[]> {
  const { status, body: reply } = await createClient(() => platform.url).post<ErrorReply>(path, body)
  return [status, reply.error?.code]
}

describe.each(texts)('%s in a text', (_, text, code) => {
  test('is refused as the answer to a wait, which stays open', async () => {
    const calls: [path: string, body: object][] = [
      [
        '/openai/v1/chat/completions',
        { model: 'scripted', messages: [{ role: 'tool', tool_call_id: `call_${task}.${tool}`, content: text }] },
      ],
      ['/openai/v1/responses', { model: 'scripted', input: [outputFor(task, form, text), outputFor(task, tool, text)] }],
    ]
    for (const [path, body] of calls) expect([path, await codeOf(path, body)]).toEqual([path, [400, code]])
    const { rows } = await platform.pg.query('select status from waits where id = any($1)', [[tool, form]])
    expect(rows).toEqual([{ status: 'open' }, { status: 'open' }])
  })

  test.skipIf(code === 'validation_failed' && text.length > 100)('is refused as the arguments of a call in a history', async () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: text } }
    const user = { role: 'user', content: 'go on' }
    const item = { type: 'function_call', call_id: 'c', name: 'f', arguments: text }
    const said = [
      { id: 'a', role: 'assistant', toolCalls: [call] },
      { id: 'u', ...user },
    ]
    const calls: [path: string, body: object][] = [
      ['/openai/v1/chat/completions', { model: 'echo', messages: [{ role: 'assistant', tool_calls: [call] }, user] }],
      ['/openai/v1/responses', { model: 'echo', input: [item, user] }],
      ['/ag-ui/echo', { threadId: randomUUID(), runId: randomUUID(), messages: said }],
    ]
    for (const [path, body] of calls) expect([path, await codeOf(path, body)]).toEqual([path, [400, code]])
  })
})

test('an answer in AG-UI’s words is as long as one of ours at most', async () => {
  const payload = 'x'.repeat(300_000)
  const body = { threadId: task, runId: randomUUID(), messages: [], resume: [{ interruptId: tool, status: 'resolved', payload }] }
  expect(await codeOf('/ag-ui/scripted', body)).toEqual([400, 'validation_failed'])
})

test('a text that is not JSON is the answer as it is', async () => {
  const own = await waitingTask()
  const wait = await addWait(own, 'tool')
  const reply = await createClient(() => platform.url).post('/openai/v1/responses', {
    ...{ model: 'scripted', background: true, input: [outputFor(own, wait, '{ it rains')] },
  })
  expect(reply.status).toBe(200)
  const { rows } = await platform.pg.query('select answer from waits where id = $1', [wait])
  expect(rows[0]?.answer).toMatchObject({ action: 'accept', content: '{ it rains' })
})

function outputFor(of: string, wait: string, output: string): object {
  return { type: 'function_call_output', call_id: `call_${of}.${wait}`, output }
}
