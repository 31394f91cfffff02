/** Rewinding a conversation: an edited input, a response that is generated again. What was said stays readable, and is no part of the history. */
import { createClient } from '@rivulet/client'
import { delta, type Message, type Turn as StoredTurn } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { rest, say, scripted } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

const words = ({ content }: Message) => (content.type === 'text' ? content.text : content.type)

/** Repeats its history. */
const parrot = defineAgent('rewound', async function* (turn) {
  yield delta(0, (await turn.history()).map(words).join('|'))
})

const ends = (turns: readonly Pick<StoredTurn, 'number' | 'status'>[]) => turns.map(({ number, status }) => `${number} ${status}`)
const codeOf = async (task: string, body: object) => {
  const reply = await platform.client.post<ErrorReply>(`/v1/tasks/${task}/turns`, body)
  return [reply.status, reply.body.error?.code]
}

test('the turns after one are discarded: kept, told to viewers, and left out of the history', async () => {
  await startOwnWorker(platform, [parrot])
  const { task } = await platform.client.createTask({ agent: 'rewound', input: 'a' })
  await platform.client.waitForEnd(task.id)
  for (const input of ['b', 'c']) {
    await platform.client.addTurn(task.id, { input })
    await platform.client.waitForEnd(task.id)
  }
  const view = createClient({ url: platform.url }).tasks.get(task.id).view({ follow: true })
  onTestFinished(view.subscribe(() => {}))
  await until('a viewer has joined', async () => view.current.turns.length === 3)
  const turn = await platform.client.addTurn(task.id, { input: 'B', after: 1 })
  expect(turn.number).toBe(4)
  const { turns } = await platform.client.waitForEnd(task.id)
  expect(ends(turns)).toEqual(['1 completed', '2 discarded', '3 discarded', '4 completed'])
  const messages = await platform.client.messages(task.id)
  expect(messages.map(({ index, turn: number }) => [index, number])).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map(i => [i, Math.floor(i / 2) + 1]))
  expect(messages.map(words)).toEqual(['a', 'a', 'b', 'a|a|b', 'c', 'a|a|b|a|a|b|c', 'B', 'a|a|B'])
  await until('the viewer has the end', async () => view.current.turns.at(3)?.status === 'completed')
  expect(ends(view.current.turns)).toEqual(['1 completed', '2 discarded', '3 discarded', '4 completed'])
  const events = (await platform.log(task.id)).map(({ event }) => event)
  expect(events.filter(({ type }) => type === 'turn.discarded')).toMatchObject([{ turn: 4, from: 2 }])
  expect(await faultsOf(platform, task.id)).toEqual([])
})

test('the last turn again is a new turn after the one before it, with all inputs of both kinds', async () => {
  await startOwnWorker(platform, [parrot])
  const rivulet = createClient({ url: platform.url })
  const task = await rivulet.tasks.create({ agent: 'rewound', input: 'a' })
  await task.result()
  await task.send('b', { ifBusy: 'merge', debounceMs: 600_000 })
  await task.send(['c', 'd'], { ifBusy: 'interrupt' })
  expect((await task.result()).text).toBe('a|a|b|c|d')
  const turn = await task.retry()
  expect([turn.number, turn.inputs?.length]).toEqual([4, 3])
  expect((await task.result()).text).toBe('a|a|b|c|d')
  expect(ends((await task.detail()).turns)).toEqual(['1 completed', '2 discarded', '3 discarded', '4 completed'])
  await task.send('A', { after: 0 })
  expect((await task.result()).text).toBe('A')
  expect(ends((await task.detail()).turns)).toEqual(['1 discarded', '2 discarded', '3 discarded', '4 discarded', '5 completed'])
  expect(await faultsOf(platform, task.id)).toEqual([])
})

test('behind a turn that others have joined, these stay a part of it', async () => {
  await startOwnWorker(platform, [parrot])
  const task = (await platform.client.createTask({ agent: 'rewound', start: false })).task.id
  await platform.client.addTurn(task, { input: 'a', ifBusy: 'merge', debounceMs: 600_000 })
  await platform.client.addTurn(task, { input: 'b', ifBusy: 'interrupt' })
  await platform.client.waitForEnd(task)
  await platform.client.addTurn(task, { input: 'c' })
  await platform.client.waitForEnd(task)
  await platform.client.addTurn(task, { input: 'C', after: 1 })
  const { turns } = await platform.client.waitForEnd(task)
  expect(ends(turns)).toEqual(['1 completed', '2 completed', '3 discarded', '4 completed'])
  expect((await platform.client.messages(task)).map(words).at(-1)).toBe('a|b|a|b|C')
  expect(await faultsOf(platform, task)).toEqual([])
})

test('a task that is busy is not rewound, unless the input interrupts: then what runs and what waits is discarded', async () => {
  const { task } = await platform.client.createTask(scripted([say(0, 'x')], { input: 'a' }))
  await platform.client.waitForEnd(task.id)
  const slow = { params: { steps: [say(0, 'y'), rest(60_000)] } }
  await platform.client.addTurn(task.id, { input: 'b', ...slow })
  await platform.client.waitForTask(task.id, ({ turns }) => turns[1]?.status === 'running')
  await platform.client.addTurn(task.id, { input: 'c', ...slow })
  expect(await codeOf(task.id, { input: 'B', after: 1 })).toEqual([409, 'task_busy'])
  expect(await codeOf(task.id, { input: 'B', after: 2, ifBusy: 'interrupt' })).toEqual([409, 'task_busy'])
  await platform.client.addTurn(task.id, { input: 'B', after: 1, ifBusy: 'interrupt' })
  const { turns } = await platform.client.waitForEnd(task.id)
  expect(ends(turns)).toEqual(['1 completed', '2 discarded', '3 discarded', '4 completed'])
  expect((await platform.client.messages(task.id)).map(words)).toEqual(['a', 'x', 'b', 'y', 'B', 'x'])
  expect(await faultsOf(platform, task.id)).toEqual([])
})

test('a turn that does not exist or was discarded, or two rewinds at once: one error each, and one new turn', async () => {
  const { task } = await platform.client.createTask(scripted([say(0, 'x')], { input: 'a' }))
  await platform.client.waitForEnd(task.id)
  expect(await codeOf(task.id, { input: 'b', after: 2 })).toEqual([404, 'not_found'])
  expect(await codeOf(task.id, { input: 'b', after: -1 })).toEqual([400, 'validation_failed'])
  expect(await codeOf(task.id, { input: 'b', after: 0, ifBusy: 'inject' })).toEqual([400, 'validation_failed'])
  // The new turn does not end by itself, so the other request finds the task busy, however late it is.
  const rewinding = { input: 'A', after: 0, params: { steps: [say(0, 'x'), rest(600_000)] } }
  const replies = await Promise.all([1, 2].map(() => platform.client.post(`/v1/tasks/${task.id}/turns`, rewinding)))
  expect(replies.map(({ status }) => status).sort()).toEqual([202, 409])
  await platform.client.cancel(task.id)
  expect(await codeOf(task.id, { input: 'b', after: 1 })).toEqual([404, 'not_found'])
  const { turns } = await platform.client.detail(task.id)
  expect(ends(turns)).toEqual(['1 discarded', '2 canceled'])
})
