/** How turns of a task follow each other, are tried again, and run out of time. */
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { extend, fail, modes, rest, say, scripted, start } from '../support/agents/scripts.ts'
import { createGate } from '../support/gate.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 2 })
})
afterAll(() => platform.close())

describe('turns of one task', () => {
  test('never overlap and run in order, whichever API and worker they meet', async () => {
    const clients = platform.apis.map(platform.clientOf)
    const { task } = await platform.client.createTask(scripted([say(0, 'turn 1'), rest(50), say(0, '.')], { input: 'input 1' }))
    for (let number = 2; number <= 10; number += 1) {
      const steps = [say(0, `turn ${number}`), rest(50), say(0, '.')]
      await clients[number % 2]?.addTurn(task.id, { input: `input ${number}`, params: { steps } })
    }
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns.map(({ number, status }) => [number, status])).toEqual(Array.from({ length: 10 }, (_, i) => [i + 1, 'completed']))
    for (const [place, turn] of turns.entries()) {
      const before = turns[place - 1]
      if (before) expect(Date.parse(turn.startedAt ?? '')).toBeGreaterThanOrEqual(Date.parse(before.finishedAt ?? ''))
    }
    const messages = await platform.client.messages(task.id)
    expect(messages.map(({ index, content }) => [index, content.type === 'text' && content.text])).toEqual(
      Array.from({ length: 20 }, (_, i) => [i, i % 2 === 0 ? `input ${i / 2 + 1}` : `turn ${(i + 1) / 2}.`]),
    )
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('get their indexes when they are first claimed: an input that waits takes none from the turn that speaks', async () => {
    const steps = [say(0, 'a'), rest(200), say(1, 'b'), say(2, 'c')]
    const { task } = await platform.client.createTask(scripted(steps, { input: 'one' }))
    await platform.client.addTurn(task.id, { input: 'two', params: { steps: [] } })
    await platform.client.addTurn(task.id, { input: 'three', params: { steps: [say(0, 'd')] } })
    await platform.client.waitForEnd(task.id)
    const messages = await platform.client.messages(task.id)
    expect(messages.map(({ turn: turnNumber, content }) => [turnNumber, content.type === 'text' && content.text])).toEqual([
      [1, 'one'],
      [1, 'a'],
      [1, 'b'],
      [1, 'c'],
      [2, 'two'],
      [3, 'three'],
      [3, 'd'],
    ])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })
})

describe('a failed attempt', () => {
  test('is tried again after a pause, under the same indexes, and leaves nothing behind', async () => {
    const attempts = {
      1: [say(0, 'first try'), say(1, 'more'), fail('not yet')],
      2: [say(0, 'second try'), fail('still not')],
      3: [say(0, 'third try')],
    }
    const { task } = await platform.client.createTask({ agent: 'scripted', input: 'go', params: { attempts }, maxAttempts: 3 })
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns).toMatchObject([{ status: 'completed', attempt: 3 }])
    expect(await platform.client.messages(task.id)).toMatchObject([
      { index: 0, author: 'user' },
      { index: 1, attempt: 3, status: 'complete', content: { text: 'third try' } },
    ])
    expect(await faultsOf(platform, task.id)).toEqual([])
    const log = await platform.log(task.id)
    const begins = log.flatMap(({ event }) => (event.type === 'turn.started' ? [event] : []))
    expect(begins.map(({ attempt, firstIndex }) => [attempt, firstIndex])).toEqual([
      [1, 1],
      [2, 1],
      [3, 1],
    ])
    const pauses = begins
      .slice(1)
      .map(({ at, attempt }) => at - Math.max(...log.flatMap(({ event }) => (event.attempt === attempt - 1 ? event.at : 0))))
    expect(pauses[0]).toBeGreaterThanOrEqual(800)
    expect(pauses[1]).toBeGreaterThanOrEqual(1_600)
  })

  test.each(modes)('that was the last one fails the turn and keeps what it said (%s)', async mode => {
    const steps = [
      start(0, { type: 'text', text: 'done' }),
      { done: { index: 0 } },
      start(1, { type: 'text', text: 'half' }),
      fail('no more'),
    ]
    const { task, turns, messages } = await platform.client.finishedTask(scripted(steps, { maxAttempts: 1 }, mode))
    expect(turns).toMatchObject([{ status: 'failed', attempt: 1, stopReason: 'error', error: { code: 'agent_error', message: 'no more' } }])
    expect(task.status).toBe('failed')
    expect(messages).toMatchObject([
      { status: 'complete', content: { text: 'done' } },
      { status: 'failed', content: { text: 'half' }, error: { message: 'no more' } },
    ])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('is not tried again when trying cannot help', async () => {
    const steps = [start(0, { type: 'text', text: 'a' }), extend(0, { type: 'media', bytes: 'AAAA' })]
    const { turns } = await platform.client.finishedTask(scripted(steps))
    expect(turns).toMatchObject([{ status: 'failed', attempt: 1, error: { code: 'delta_type_mismatch' } }])
  })

  test('lets the next turn run', async () => {
    const { task } = await platform.client.createTask(scripted([fail('no')], { maxAttempts: 1 }))
    await platform.client.addTurn(task.id, { params: { steps: [say(0, 'yes')] } })
    const end = await platform.client.waitForEnd(task.id)
    expect(end.turns.map(({ status }) => status)).toEqual(['failed', 'completed'])
    expect(end.task.status).toBe('completed')
  })
})

describe('time', () => {
  test('a delayed task does not start before its time', async () => {
    const { turns } = await platform.client.finishedTask({ agent: 'echo', input: 'later', delayMs: 1_200 })
    const [turn] = turns
    expect(Date.parse(turn?.startedAt ?? '') - Date.parse(turn?.queuedAt ?? '')).toBeGreaterThanOrEqual(1_200)
  })

  test.concurrent.for(modes)('a turn that runs out of it fails once, its words kept as aborted (%s)', async (mode, { expect }) => {
    const steps = [start(0, { type: 'text', text: '' }), say(0, 'before the end'), rest(60_000)]
    const { task, turns, messages } = await platform.client.finishedTask(scripted(steps, { timeoutMs: 4_000 }, mode))
    expect(turns).toMatchObject([{ status: 'failed', attempt: 1, error: { code: 'deadline_exceeded' } }])
    expect(messages).toMatchObject([
      { status: 'aborted', stopReason: 'aborted', content: { text: 'before the end' }, error: { code: 'deadline_exceeded' } },
    ])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('it does not pass in the queue: a turn that waits longer than its timeout behind another runs after it', async () => {
    const { open, opened } = createGate()
    await startOwnWorker(platform, [defineAgent('patient', turn => turn.send('words').then(() => opened))])
    const { task } = await platform.client.createTask({ agent: 'patient' })
    await platform.client.waitForTask(task.id, ({ turns: [first] }) => first?.status === 'running')
    await platform.client.addTurn(task.id, { input: 'impatient' })
    const hung = await platform.client.createTask(scripted([say(0, 'begun'), rest(60_000)]))
    await platform.client.waitForTask(hung.task.id, ({ turns: [only] }) => only?.status === 'running')
    const age = "update turns set deadline = now() - interval '1 hour' where task = $1 and number = $2"
    await platform.pg.query(age, [task.id, 2])
    await platform.pg.query(age, [hung.task.id, 1])
    // The same round of the reconciler looks at both.
    expect((await platform.client.waitForEnd(hung.task.id)).turns).toMatchObject([{ error: { code: 'deadline_exceeded' } }])
    open()
    const end = await platform.client.waitForEnd(task.id)
    expect(end.turns).toMatchObject([
      { status: 'completed', attempt: 1 },
      { status: 'completed', attempt: 1 },
    ])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })
})
