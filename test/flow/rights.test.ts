/** Keys and tokens with few rights, from outside: a key limited to agents, a key that may only write, each right of a token. */
import type { Scope, TokenRight } from '@rivulet/contract/scopes'
import type { Wait } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTestKeyring, pepper, type TestKeyring } from '../support/platform/keyring.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { createClient, type ErrorReply, type Reply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

const root = 'the-root-key-of-this-test'
const mark = 'secret-of-another'

let platform: Platform
let keyring: TestKeyring
let owner: string
let writer: string
/** May use `echo` alone; the tasks of these tests are of `scripted`. */
let limited: string
beforeAll(async () => {
  platform = await startPlatform({ env: { RIVULET_KEY: root, KEY_PEPPER: pepper, RIVULET_WORKER_KEY: root } })
  keyring = openTestKeyring(platform.databaseUrl)
  owner = await keyFor(['tasks:read', 'tasks:write'])
  writer = await keyFor(['tasks:write'])
  limited = await keyFor(['tasks:read', 'tasks:write'], ['echo'])
})
afterAll(async () => {
  await keyring.close()
  await platform.close()
})

async function keyFor(scopes: Scope[], agents?: string[]): Promise<string> {
  return (await keyring.create({ tenant: 'acme', scopes, ...(agents && { agents }) })).key
}

function ask<T = unknown>(method: string, path: string, key: string, body?: object): Promise<Reply<T>> {
  const json = body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
  return createClient(() => platform.url).send<T>(method, path, {
    ...json,
    headers: { ...json?.headers, authorization: `Bearer ${key}` },
  })
}

const codeOf = ({ status, body }: Reply) => [status, (body as ErrorReply).error?.code]

/** A task whose turn asks for an approval; everything in it has the mark. */
async function askingTask(): Promise<{ id: string; wait: Wait }> {
  const steps = [{ ask: { name: 'go', title: mark, holdMs: 0 } }, { full: { index: 0, content: { type: 'text', text: mark } } }]
  const body = { agent: 'scripted', input: mark, params: { steps }, metadata: { mark }, name: `${mark} ${crypto.randomUUID()}` }
  const { id } = (await ask<{ task: { id: string } }>('POST', '/v1/tasks', owner, body)).body.task
  const wait = await until('the turn asks', async () => {
    const { data } = (await ask<{ data: Wait[] }>('GET', `/v1/waits?task=${id}`, owner)).body
    return data[0]
  })
  return { id, wait }
}

async function statusOf(id: string, wait: Wait): Promise<string> {
  return (await ask<{ wait: Wait }>('GET', `/v1/tasks/${id}/waits/${wait.id}`, owner)).body.wait.status
}

async function tokenFor(id: string, can: TokenRight[], wait?: string): Promise<string> {
  const body = { can, ...(wait !== undefined && { wait }) }
  return (await ask<{ token: string }>('POST', `/v1/tasks/${id}/tokens`, owner, body)).body.token
}

describe('a key that is limited to other agents', () => {
  test('can neither close a wait of a task nor read what follows, in OpenAI’s words, whichever model it names', async () => {
    for (const model of ['scripted', 'echo']) {
      const { id, wait } = await askingTask()
      const messages = [{ role: 'tool', tool_call_id: `call_${id}.${wait.id}`, content: '{"action":"accept"}' }]
      const chat = await ask('POST', '/openai/v1/chat/completions', limited, { model, messages })
      expect(codeOf(chat)).toEqual([404, 'task_not_found'])
      const approval = [{ type: 'mcp_approval_response', approval_request_id: `mcpr_${id}.${wait.id}`, approve: true }]
      for (const previous of [{}, { previous_response_id: `${id}.1.1` }])
        expect(codeOf(await ask('POST', '/openai/v1/responses', limited, { model, input: approval, ...previous }))).toEqual([
          404,
          'task_not_found',
        ])
      expect(await statusOf(id, wait)).toBe('open')
    }
  })

  test('finds no task of theirs by an id in a body, whatever it wants with it', async () => {
    const { id } = await askingTask()
    const { turns } = (await ask<{ turns: { id: string }[] }>('GET', `/v1/tasks/${id}`, owner)).body
    const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'yes' }], taskId: turns[0]?.id }
    const calls: [path: string, body: object][] = [
      ['/a2a/echo/message:send', { message }],
      ['/a2a/echo/message:send', { message: { ...message, taskId: undefined, contextId: id } }],
      ['/openai/v1/responses', { model: 'echo', input: 'x', conversation: id, background: true }],
      ['/openai/v1/responses', { model: 'scripted', input: 'x', previous_response_id: `${id}.1.1`, background: true }],
      ['/ag-ui/scripted', { threadId: id, runId: 'r', messages: [{ id: 'm', role: 'user', content: 'x' }] }],
      ['/v1/events', { tasks: { [id]: null } }],
    ]
    for (const [path, body] of calls) {
      const reply = await ask('POST', path, limited, body)
      expect([path, reply.status, JSON.stringify(reply.body).includes(mark)]).toEqual([path, 404, false])
    }
  })
})

describe.each(['/v1/files', '/openai/v1/files'])('DELETE %s/:id', path => {
  test('removes for a key that is limited to an agent a file that no task has referred to yet, and none of another agent', async () => {
    const headers = { authorization: `Bearer ${owner}` }
    const upload = async () =>
      (await createClient(() => platform.url).send<{ file: { id: string } }>('POST', '/v1/files', { body: mark, headers })).body.file.id
    const [unused, used] = [await upload(), await upload()]
    const history = [{ author: 'user', content: { type: 'media', mimeType: 'text/plain', file: used } }]
    expect((await ask('POST', '/v1/tasks', owner, { agent: 'scripted', start: false, history })).status).toBe(201)
    expect(codeOf(await ask('DELETE', `${path}/${used}`, limited))).toEqual([404, 'not_found'])
    expect((await ask('DELETE', `${path}/${unused}`, limited)).status).toBeLessThan(300)
    expect(codeOf(await ask('GET', `/v1/files/${unused}`, owner))).toEqual([404, 'not_found'])
    expect((await ask('GET', `/v1/files/${used}`, owner)).status).toBe(200)
  })
})

test('a stream of a key that is limited to an agent ends when the conversation moves to another agent', async () => {
  const items = [{ role: 'user', content: 'hi' }]
  const { id } = (await ask<{ id: string }>('POST', '/openai/v1/conversations', limited, { items })).body
  const response = await fetch(`${platform.url}/v1/tasks/${id}/events?follow=true`, { headers: { authorization: `Bearer ${limited}` } })
  expect(response.status).toBe(200)
  const moving = { model: 'scripted', conversation: id, input: 'x', background: true }
  expect((await ask('POST', '/openai/v1/responses', owner, moving)).status).toBe(200)
  for await (const _ of response.body ?? []);
  expect(codeOf(await ask('GET', `/v1/tasks/${id}`, limited))).toEqual([404, 'task_not_found'])
})

describe('a key that may only write', () => {
  const hidden = async (method: string, path: string, body?: object) => {
    const reply = await ask(method, path, writer, body)
    expect([path, reply.status < 300, JSON.stringify(reply.body ?? '').includes(mark)]).toEqual([path, true, false])
    return reply
  }

  test('gets what it sends, and nothing that others have sent: not of a fork, a named task, an answered wait, a cancel', async () => {
    const { id, wait } = await askingTask()
    const { name } = (await ask<{ task: { name: string } }>('GET', `/v1/tasks/${id}`, owner)).body.task
    await hidden('POST', '/v1/tasks', { agent: 'scripted', name })
    await hidden('POST', `/v1/tasks/${id}/waits/${wait.id}/answer`, { action: 'accept' })
    await until('the turn has ended', async () => {
      const { task } = (await ask<{ task: { status: string } }>('GET', `/v1/tasks/${id}`, owner)).body
      return task.status === 'completed'
    })
    await hidden('POST', `/v1/tasks/${id}/fork`, {})
    await hidden('PATCH', `/v1/tasks/${id}`, { metadata: { more: 1 } })
    await hidden('POST', `/v1/tasks/${id}/retry`, {})
    await hidden('POST', `/v1/tasks/${id}/cancel`, {})
    const own = await ask('POST', '/v1/tasks', writer, { agent: 'echo', input: 'mine', params: { mine: 1 } })
    expect(own).toMatchObject({ status: 201, body: { task: { params: { mine: 1 } }, turn: { input: { text: 'mine' } } } })
  })

  test('gets neither the name nor the size of a file that it refers to by its id', async () => {
    const headers = { authorization: `Bearer ${owner}`, 'x-filename': `${mark}.txt` }
    const uploaded = await createClient(() => platform.url).send<{ file: { id: string } }>('POST', '/v1/files', { body: mark, headers })
    const input = { type: 'media', mimeType: 'text/plain', file: uploaded.body.file.id }
    const task = await ask('POST', '/v1/tasks', writer, { agent: 'echo', input: [input, input] })
    expect(task).toMatchObject({ status: 201, body: { turn: { input, inputs: [input, input] } } })
    const schedule = await ask('POST', '/v1/schedules', writer, { agent: 'echo', cron: '0 0 1 1 *', input })
    expect(schedule).toMatchObject({ status: 201, body: { schedule: { input } } })
    for (const { body } of [task, schedule]) expect(JSON.stringify(body)).not.toMatch(RegExp(`${mark}|"size"`))
  })

  test('gets no input of a schedule, and no address of a webhook', async () => {
    const schedule = { agent: 'echo', cron: '0 0 1 1 *', input: mark, params: { mark }, name: mark }
    const made = await ask<{ schedule: { id: string } }>('POST', '/v1/schedules', owner, schedule)
    for (const verb of ['pause', 'resume', 'trigger']) await hidden('POST', `/v1/schedules/${made.body.schedule.id}/${verb}`)
    const hook = { url: `https://example.com/${mark}`, events: ['turn.finished'] }
    const { id } = (await ask<{ webhook: { id: string } }>('POST', '/v1/webhooks', owner, hook)).body.webhook
    expect((await hidden('PATCH', `/v1/webhooks/${id}`, { status: 'disabled' })).body).toMatchObject({
      webhook: { id, status: 'disabled' },
    })
  })

  test('gets the state of a task of A2A that it sends to or cancels, and none of its messages', async () => {
    const { id } = await askingTask()
    const { turns } = (await ask<{ turns: { id: string }[] }>('GET', `/v1/tasks/${id}`, owner)).body
    const sent = { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'no' }], taskId: turns[0]?.id } }
    await hidden('POST', '/a2a/scripted/message:send', { ...sent, configuration: { returnImmediately: true } })
    const other = await askingTask()
    const [turn] = (await ask<{ turns: { id: string }[] }>('GET', `/v1/tasks/${other.id}`, owner)).body.turns
    const canceled = await hidden('POST', `/a2a/scripted/tasks/${turn?.id}:cancel`, {})
    expect(JSON.parse(String(canceled.body))).toMatchObject({
      id: turn?.id,
      contextId: other.id,
      status: { state: 'TASK_STATE_CANCELED' },
    })
  })
})

describe('a token', () => {
  const lacks = (right: string) => ({ status: 403, body: { error: { code: 'forbidden', message: expect.stringContaining(right) } } })

  test('that may send neither declines, replaces params, rewinds, cancels nor signals', async () => {
    const { id, wait } = await askingTask()
    const turns = `/v1/tasks/${id}/turns`
    const send = await tokenFor(id, ['send'])
    expect(await ask('POST', turns, send, { input: 'x', ifBusy: 'decline' })).toMatchObject(lacks('answer'))
    expect(await ask('POST', turns, send, { input: 'x', params: { steps: [] } })).toMatchObject(lacks('params'))
    expect(await ask('POST', turns, send, { input: 'x', params: null })).toMatchObject(lacks('params'))
    expect(await ask('POST', turns, send, { input: 'x', after: 0 })).toMatchObject(lacks('rewind'))
    expect(await ask('POST', turns, send, { input: 'x', ifBusy: 'interrupt' })).toMatchObject(lacks('cancel'))
    expect(await ask('POST', `/v1/tasks/${id}/retry`, send, {})).toMatchObject(lacks('rewind'))
    expect(codeOf(await ask('POST', `/v1/tasks/${id}/signals`, send, { name: 'paid' }))).toEqual([403, 'forbidden'])
    expect(await statusOf(id, wait)).toBe('open')
    expect((await ask('POST', turns, send, { input: 'x' })).status).toBe(202)
  })

  test('that names a right has it', async () => {
    const { id, wait } = await askingTask()
    const turns = `/v1/tasks/${id}/turns`
    expect((await ask('POST', `/v1/tasks/${id}/signals`, await tokenFor(id, ['answer']), { name: 'paid' })).status).toBe(202)
    const oneWait = await tokenFor(id, ['send', 'answer'], wait.id)
    expect(await ask('POST', turns, oneWait, { input: 'x', ifBusy: 'decline' })).toMatchObject(lacks('answer'))
    expect((await ask('POST', turns, await tokenFor(id, ['send', 'answer']), { input: 'x', ifBusy: 'decline' })).status).toBe(202)
    expect(await statusOf(id, wait)).toBe('answered')
    expect((await ask('POST', turns, await tokenFor(id, ['send', 'params']), { input: 'x', params: { steps: [] } })).status).toBe(202)
    const rewinding = { input: 'x', after: 0, ifBusy: 'interrupt' }
    expect((await ask('POST', turns, await tokenFor(id, ['send', 'cancel', 'rewind']), rewinding)).status).toBe(202)
  })
})
