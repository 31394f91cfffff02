/** Conversations that begin elsewhere: an imported history, and a copy of a task up to one of its turns. */
import { createClient } from '@rivulet/client'
import { delta } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rest, say, scripted } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { Accepted, ErrorReply } from '../support/platform/platform-client.ts'
import { runCli } from '../support/terminal.ts'
import { watch } from '../support/viewers/viewer.ts'

let platform: Platform

/** Repeats its whole history. */
const parrot = defineAgent('parrot', async function* (turn) {
  const said = (await turn.history()).map(({ author, content }) => `${author}: ${content.type === 'text' ? content.text : content.type}`)
  yield delta(0, said.join(' | '))
})

beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

const history = [
  { author: 'system', content: 'Be brief.' },
  { author: 'user', content: 'One?' },
  { author: 'agent', content: { type: 'reasoning', summary: ['hm'], content: [] } },
  { author: 'agent', content: 'One.', metadata: { from: 'elsewhere' } },
  { author: 'user', content: 'Two?' },
  { author: 'user', content: 'Please.' },
  { author: 'agent', content: 'Two.' },
]

describe('an imported history', () => {
  test('is what the agent and every reader find before the first turn', async () => {
    await startOwnWorker(platform, [parrot])
    const { task, turn } = await platform.client.createTask({ agent: 'parrot', input: 'Three?', history })
    expect(turn.number).toBe(3)
    const viewer = watch(task.id, { urls: platform.urls })
    await viewer.ended
    const messages = await platform.client.messages(task.id)
    expect(messages.map(({ index, turn, author, status }) => [index, turn, author, status])).toEqual(
      ['system', 'user', 'agent', 'agent', 'user', 'user', 'agent', 'user', 'agent'].map((author, index) => {
        return [index, index < 4 ? 1 : index < 7 ? 2 : 3, author, 'complete']
      }),
    )
    expect(messages[3]).toMatchObject({ content: { type: 'text', text: 'One.' }, metadata: { from: 'elsewhere' } })
    expect(textOf(messages.at(-1))).toBe(
      'system: Be brief. | user: One? | agent: reasoning | agent: One. | user: Two? | user: Please. | agent: Two. | user: Three?',
    )
    const { turns } = await platform.client.detail(task.id)
    expect(turns.map(({ number, status, input }) => [number, status, input?.type === 'text' && input.text])).toEqual([
      [1, 'completed', 'One?'],
      [2, 'completed', 'Two?'],
      [3, 'completed', 'Three?'],
    ])
  })

  test('comes as a snapshot to a reader from the start, because no log has it', async () => {
    await startOwnWorker(platform, [parrot])
    const { task } = await platform.client.createTask({ agent: 'parrot', input: 'Three?', history })
    const handle = createClient({ url: platform.url }).tasks.get(task.id)
    const types: string[] = []
    for await (const { type } of handle.events()) types.push(type)
    expect(types[0]).toBe('snapshot')
    const { messages } = await handle.result()
    expect(textOf(messages.at(-1))).toContain('agent: Two.')
  })

  test('is for a new task: one that exists keeps its own', async () => {
    await startOwnWorker(platform, [parrot])
    const body = { agent: 'parrot', name: 'kept', input: 'hi', history }
    const first = await platform.client.createTask(body)
    await platform.client.waitForEnd(first.task.id)
    const again = await platform.client.createTask(body)
    expect([again.task.id, again.turn.number]).toEqual([first.task.id, 4])
    await platform.client.waitForEnd(first.task.id)
  })

  test.each([
    ['empty', []],
    ['too long', Array.from({ length: 1_001 }, () => ({ author: 'user', content: 'x' }))],
    ['an unknown author', [{ author: 'robot', content: 'x' }]],
    ['an unknown field', [{ author: 'user', content: 'x', index: 3 }]],
    ['no content', [{ author: 'user' }]],
  ])('%s is refused, and leaves nothing behind', async (_, wrong) => {
    const name = crypto.randomUUID()
    const reply = await platform.client.post<ErrorReply>('/v1/tasks', { agent: 'echo', name, history: wrong })
    expect([reply.status, reply.body.error.code]).toEqual([400, 'validation_failed'])
    expect((await platform.client.get<{ data: [] }>(`/v1/tasks?name=${name}`)).body.data).toEqual([])
  })
})

describe('a fork', () => {
  test('has everything up to its turn, goes on by itself, and leaves its source alone', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, 'first')], { input: 'one', metadata: { a: 1 } }))
    await platform.client.waitForEnd(task.id)
    await platform.client.addTurn(task.id, { input: 'two', params: { steps: [say(0, 'second')] } })
    await platform.client.waitForEnd(task.id)
    const before = await platform.client.messages(task.id)
    const copy = await fork(task.id, { after: 1, input: 'other', params: { steps: [say(0, 'another')] } })
    expect(copy).toMatchObject({ task: { agent: 'scripted', parent: task.id, metadata: { a: 1 } }, turn: { number: 2 } })
    const viewer = watch(copy.task.id, { urls: platform.urls })
    await viewer.ended
    expect((await platform.client.messages(copy.task.id)).map(textOf)).toEqual(['one', 'first', 'other', 'another'])
    expect(await platform.client.messages(task.id)).toEqual(before)
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('without an input waits for one, and outlives its source', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, 'first')], { input: 'one' }))
    await platform.client.waitForEnd(task.id)
    const copy = await fork(task.id, undefined)
    expect(copy).toMatchObject({ task: { status: 'completed' }, turn: { number: 1, status: 'completed', task: copy.task.id } })
    expect((await platform.client.remove(task.id)).status).toBe(204)
    const viewer = watch(copy.task.id, { urls: platform.urls })
    await viewer.ended
    expect(viewer.text()).toBe('first')
    await platform.client.addTurn(copy.task.id, { input: 'two', params: { steps: [say(0, 'second')] } })
    await platform.client.waitForEnd(copy.task.id)
    expect((await platform.client.messages(copy.task.id)).map(textOf)).toEqual(['one', 'first', 'two', 'second'])
  })

  test('of a busy task ends before the turn that runs; at that turn, and beyond the last, it is refused', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, 'first')], { input: 'one' }))
    await platform.client.waitForEnd(task.id)
    await platform.client.addTurn(task.id, { input: 'two', params: { steps: [say(0, 'half'), rest(60_000)] } })
    expect(await fork(task.id, {})).toMatchObject({ turn: { number: 1 } })
    expect(await rejection(task.id, { after: 2 })).toEqual([409, 'task_busy'])
    await platform.client.cancel(task.id)
    expect(await fork(task.id, {})).toMatchObject({ turn: { number: 2, status: 'canceled' }, task: { status: 'canceled' } })
    expect(await rejection(task.id, { after: 3 })).toEqual([404, 'not_found'])
    expect(await rejection(task.id, { after: 0 })).toEqual([400, 'validation_failed'])
    expect(await rejection(crypto.randomUUID(), {})).toEqual([404, 'task_not_found'])
    const fresh = await platform.client.createTask(scripted([rest(60_000)]))
    expect(await rejection(fresh.task.id, {})).toEqual([409, 'task_busy'])
    await platform.client.cancel(fresh.task.id)
  })

  test('under a name that is taken is refused; under one Idempotency-Key there is one copy', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, 'first')], { name: 'source' }))
    await platform.client.waitForEnd(task.id)
    expect(await rejection(task.id, { name: 'source' })).toEqual([409, 'name_taken'])
    const key = { 'idempotency-key': crypto.randomUUID() }
    const asked = await Promise.all(
      [1, 2].map(async () => {
        const reply = await platform.client.post<Accepted>(`/v1/tasks/${task.id}/fork`, { name: 'copy' }, key)
        return reply.status === 409 ? 'in flight' : reply.body.task.id
      }),
    )
    expect(new Set(asked.filter(id => id !== 'in flight')).size).toBe(1)
  })

  test('is made by the client and by the command line', async () => {
    await startOwnWorker(platform, [parrot])
    const client = createClient({ url: platform.url })
    const source = await client.tasks.create({ agent: 'parrot', input: 'hi' })
    await source.result()
    const copy = await source.fork({ input: 'and?' })
    const { messages } = await copy.result()
    expect(textOf(messages.at(-1))).toContain('user: hi')
    const { code, stdout } = await runCli(['fork', source.id, 'then?', '--after', '1', '--url', platform.url])
    expect([code, stdout.trim().split('\n').at(-1)]).toEqual([0, 'user: hi | agent: user: hi | user: then?'])
  })
})

async function fork(task: string, body: object | undefined): Promise<Accepted> {
  const reply = await platform.client.post<Accepted>(`/v1/tasks/${task}/fork`, body ?? {})
  expect([reply.status, reply.body]).toEqual([201, expect.anything()])
  return reply.body
}

async function rejection(task: string, body: object): Promise<[number, string]> {
  const { status, body: reply } = await platform.client.post<ErrorReply>(`/v1/tasks/${task}/fork`, body)
  return [status, reply.error.code]
}

function textOf(message: { content: { type: string } } | undefined): string {
  const content = message?.content
  return content && 'text' in content ? String(content.text) : ''
}
