/** Turns with several inputs: consecutive messages of the user, for the agent, the log, the rows and every reader. */
import { createClient } from '@rivulet/client'
import { type Content, delta, maxInputs, text } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fail, say, scripted } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { watch } from '../support/viewers/viewer.ts'

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

const inputs: [string, Content, string] = ['Look at this.', { type: 'data', data: { n: 1 } }, 'What is it?']
const contents = [text('Look at this.'), inputs[1], text('What is it?')]

/** Says what it was given. */
const teller = defineAgent('teller', async function* (turn) {
  const history = (await turn.history()).map(({ index, author, content }) => `${index} ${author} ${content.type}`)
  yield delta(0, JSON.stringify({ first: turn.input, all: turn.inputs, text: turn.text, history }))
})

describe('several inputs', () => {
  test('are messages one after the other, before what the agent says, for the agent and for every reader', async () => {
    await startOwnWorker(platform, [teller])
    const { task, turn } = await platform.client.createTask({ agent: 'teller', input: inputs })
    expect([turn.input, turn.inputs]).toEqual([contents[0], contents])
    const viewer = watch(task.id, { urls: platform.urls })
    await viewer.ended
    const messages = await platform.client.messages(task.id)
    expect(messages.map(({ index, turn, author, status }) => [index, turn, author, status])).toEqual([
      [0, 1, 'user', 'complete'],
      [1, 1, 'user', 'complete'],
      [2, 1, 'user', 'complete'],
      [3, 1, 'agent', 'complete'],
    ])
    const said = messages[3]?.content
    expect(said?.type === 'text' && JSON.parse(said.text)).toEqual({
      first: contents[0],
      all: contents,
      text: 'Look at this.\n\nWhat is it?',
      history: ['0 user text', '1 user data', '2 user text'],
    })
    const started = (await platform.log(task.id)).find(({ event }) => event.type === 'turn.started')?.event
    expect(started).toMatchObject({ firstIndex: 3, input: { index: 0 }, inputs: [{ index: 0 }, { index: 1 }, { index: 2 }] })
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('of a later turn, and of an attempt that follows a failed one, keep their indexes', async () => {
    const script = { attempts: { 1: [say(0, 'no'), fail('once')], 2: [say(0, 'yes')] } }
    const { task } = await platform.client.createTask({ agent: 'scripted', params: script, input: ['a', 'b'] })
    await platform.client.waitForEnd(task.id)
    await platform.client.addTurn(task.id, { input: ['c'] })
    await platform.client.addTurn(task.id, { input: ['d', 'e'] })
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns.map(({ input, inputs: all }) => [input, all?.length])).toEqual([
      [text('a'), 2],
      [text('c'), undefined],
      [text('d'), 2],
    ])
    const messages = await platform.client.messages(task.id)
    expect(messages.map(({ author, turn }) => `${turn} ${author}`)).toEqual([
      '1 user',
      '1 user',
      '1 agent',
      '2 user',
      '2 agent',
      '3 user',
      '3 user',
      '3 agent',
    ])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('are sent by the client, come again with a retry and a fork, and are in the snapshot of a turn that waits', async () => {
    const rivulet = createClient({ url: platform.url })
    const task = await rivulet.tasks.create({ ...(scripted([say(0, 'x')]) as { agent: string }), input: ['one', 'two'] })
    await task.result()
    expect((await task.send(['three', text('four')])).inputs).toEqual([text('three'), text('four')])
    await task.result()
    expect((await task.retry()).inputs).toEqual([text('three'), text('four')])
    await task.result()
    const copy = await task.fork({ after: 1, input: ['five', 'six'] })
    expect(copy.turn.inputs).toEqual([text('five'), text('six')])
    await copy.result()
    const idle = await rivulet.tasks.create({ agent: 'scripted', input: ['a', 'b'], delayMs: 60_000 })
    const snapshot = await until('a snapshot arrives', async () => {
      for await (const event of idle.events({ from: 'snapshot' })) return event.type === 'snapshot' && event
    })
    expect(snapshot.turns[0]?.inputs).toEqual([text('a'), text('b')])
    await idle.cancel()
  })

  test('that are large are left out of turn.queued and of a list of turns, whole or not at all', async () => {
    const large = [text('x'.repeat(40_000)), text('y'.repeat(40_000))]
    const { task, turn } = await platform.client.createTask({ agent: 'scripted', input: large, delayMs: 60_000 })
    expect(turn.inputs).toHaveLength(2)
    const queued = await until('turn.queued is in the log', async () => (await platform.log(task.id))[0]?.event)
    expect(queued).toMatchObject({ type: 'turn.queued', omitted: ['input'] })
    expect([...Object.keys(queued)]).not.toContain('inputs')
    await platform.client.cancel(task.id)
  })
})

describe('bad inputs', () => {
  const bad: [string, unknown][] = [
    ['none at all', []],
    [`more than ${maxInputs}`, Array.from({ length: maxInputs + 1 }, () => 'x')],
    ['something that is no content', ['x', 5]],
    ['an unknown field in one of them', ['x', { type: 'text', text: 'y', mood: 'good' }]],
    ['a list in a list', [['x']]],
  ]
  test.each(bad)('%s is rejected, for a task and for a turn', async (_, input) => {
    const task = await platform.client.createTask({ agent: 'echo', start: false })
    for (const [path, body] of [
      ['/v1/tasks', { agent: 'echo', input }],
      [`/v1/tasks/${task.task.id}/turns`, { input }],
    ] as const) {
      const reply = await platform.client.post<ErrorReply>(path, body)
      expect([reply.status, reply.body.error.code]).toEqual([400, 'validation_failed'])
    }
  })

  test(`${maxInputs} are accepted, and what is larger than a body is not`, async () => {
    const { turn } = await platform.client.createTask({ agent: 'echo', input: Array.from({ length: maxInputs }, () => 'x') })
    expect(turn.inputs).toHaveLength(maxInputs)
    const reply = await platform.client.post<ErrorReply>('/v1/tasks', { agent: 'echo', input: ['x'.repeat(1 << 20), 'y'.repeat(1 << 20)] })
    expect([reply.status, reply.body.error.code]).toEqual([413, 'body_too_large'])
  })
})
