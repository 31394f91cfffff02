/** Retries after a failure and after a death, which are counted separately. No viewer ever sees two attempts at once. */
import { createClient } from '@rivulet/client'
import { emptyState, messagesOf, type TaskState } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fail, rest, type Step, say, scripted } from '../support/agents/scripts.ts'
import { createGate } from '../support/gate.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { metric } from '../support/platform/metrics.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import type { PlatformProcess } from '../support/platform/platform-process.ts'
import { until } from '../support/until.ts'
import { foldFrame, type Viewer, watch } from '../support/viewers/viewer.ts'

const exit: Step = { exit: 1 }

let platform: Platform

beforeAll(async () => {
  // Processes of their own start while the machine is busy: a lease must outlive that.
  platform = await startPlatform({ env: { ...shortLease, RIVULET_ALLOW_EXIT: '1' } })
})
afterAll(() => platform.close())

describe('a failed attempt', () => {
  test('stays visible until the next one starts, and is gone then', async () => {
    const { open, opened } = createGate()
    const agent = defineAgent('tried', async turn => {
      await turn.message().append(turn.attempt === 1 ? 'first try' : 'second try')
      await opened
      if (turn.attempt === 1) throw new Error('no')
    })
    await startOwnWorker(platform, [agent])
    const { task } = await platform.client.createTask({ agent: 'tried', input: 'go' })
    const viewer = watch(task.id, { urls: [platform.url] })
    await viewer.until('the first attempt', ({ text }) => text() === 'first try')
    // A paused agent starts no attempt, so the first one can be looked at for as long as that takes.
    const { agents } = createClient({ url: platform.url })
    await agents.pause('tried')
    open()
    await platform.client.waitForTask(task.id, ({ turns: [turn] }) => turn?.status === 'queued' && turn.attempt === 1)
    const shown = await platform.client.messages(task.id)
    expect(shown).toMatchObject([{ author: 'user' }, { index: 1, attempt: 1, status: 'failed', content: { text: 'first try' } }])
    await agents.resume('tried')
    await viewer.ended
    expect(mixtures(viewer)).toEqual([])
    expect(attemptsSeen(viewer)).toEqual([1, 2])
    expect(await platform.client.messages(task.id)).toMatchObject([{}, { index: 1, attempt: 2, content: { text: 'second try' } }])
    expect([...(await faultsOf(platform, task.id)), ...(await faultsOfViewers(platform, [viewer]))]).toEqual([])
    expect(linesAbout(task.id, 'attempt failed; the turn will be retried')).toMatchObject([{ turn: 1, attempt: 1 }])
  })

  test('is tried as often as the task allows, and told each time', async () => {
    const before = await metric(platform.url, 'rivulet_turn_retries_total')
    const { task, turns } = await platform.client.finishedTask(scripted([say(0, 'x'), fail('never')], { maxAttempts: 2 }))
    expect(turns).toMatchObject([{ status: 'failed', attempt: 2, error: { code: 'agent_error', message: 'never' } }])
    expect(await metric(platform.url, 'rivulet_turn_retries_total')).toBe(before + 1)
    expect(await faultsOf(platform, task.id)).toEqual([])
  })
})

describe('a turn out of time', () => {
  test('ends though its handler hangs, and makes room for the next', async () => {
    const hung = defineAgent('hung', async turn => {
      await turn.message().append(turn.input ? 'in vain' : 'next')
      if (turn.input) await new Promise(() => {})
    })
    await startOwnWorker(platform, [hung], { concurrency: 1 })
    const { task, turns, messages } = await platform.client.finishedTask({ agent: 'hung', input: 'go', timeoutMs: 4_000 })
    expect(turns).toMatchObject([{ status: 'failed', attempt: 1, error: { code: 'deadline_exceeded' } }])
    expect(messages).toMatchObject([{}, { status: 'aborted', stopReason: 'aborted', content: { text: 'in vain' } }])
    expect(await faultsOf(platform, task.id)).toEqual([])
    expect((await platform.client.finishedTask({ agent: 'hung' })).messages).toMatchObject([{ content: { text: 'next' } }])
  })

  test('ends though its worker is frozen; the worker writes nothing when it wakes', async () => {
    const worker = onlyWorker()
    const steps = [say(0, 'half'), rest(4_200), say(0, ' and half')]
    const { task } = await platform.client.createTask(scripted(steps, { timeoutMs: 4_000 }))
    const viewer = watch(task.id, { urls: [platform.url] })
    await viewer.until('the first half', ({ text }) => text() === 'half')
    const before = await metric(platform.url, 'rivulet_reconciler_repairs_total', { kind: 'deadline' })
    worker.freeze()
    await viewer.ended
    const log = await platform.log(task.id)
    worker.wake()
    await until('the worker has noticed', () => worker.lines.some(line => line.msg.startsWith('turn ') && line.task === task.id))
    expect(await platform.log(task.id)).toEqual(log)
    expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'failed', error: { code: 'deadline_exceeded' } }])
    await until(
      'it is counted',
      async () => (await metric(platform.url, 'rivulet_reconciler_repairs_total', { kind: 'deadline' })) === before + 1,
    )
    // Its lease may expire just before its deadline.
    expect(linesAbout(task.id, 'reconciler repaired').at(-1)).toMatchObject({ kind: 'deadline', turn: 1 })
    expect([...(await faultsOf(platform, task.id)), ...(await faultsOfViewers(platform, [viewer]))]).toEqual([])
  })
})

describe('a worker that dies', () => {
  test('takes the others with it: from its second death on the poison runs alone, and the third ends it', async () => {
    const shared = onlyWorker()
    const before = await metric(platform.url, 'rivulet_worker_deaths_total')
    const good = await Promise.all(
      ['a', 'b', 'c'].map(name => {
        // The first attempt lasts until its worker dies.
        const attempts = { 1: [say(0, name), rest(600_000)], 2: [say(0, name), say(0, '!')] }
        return platform.client.createTask({ agent: 'scripted', params: { attempts }, maxAttempts: 1 })
      }),
    )
    const viewers = good.map(({ task }) => watch(task.id, { urls: [platform.url] }))
    for (const viewer of viewers) await viewer.until('a beginning', ({ text }) => text() !== '')
    const { task: poison } = await platform.client.createTask(scripted([say(0, 'poison'), rest(100), exit]))
    await shared.exited
    // A slot for one turn: what the second worker takes with it is the poison, whenever that comes to it.
    const second = await platform.startWorker({ WORKER_CONCURRENCY: '1' })
    await second.exited
    const successor = await platform.startWorker()

    // Deaths are not failures: a task with one attempt gets another one.
    for (const { task } of good)
      expect((await platform.client.waitForEnd(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 2 }])
    expect(viewers.flatMap(mixtures)).toEqual([])
    expect(viewers.map(attemptsSeen)).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ])
    expect(await faultsOfViewers(platform, viewers)).toEqual([])

    const { turns } = await platform.client.waitForEnd(poison.id)
    expect(turns).toMatchObject([{ status: 'failed', attempt: 3, error: { code: 'worker_lost' } }])
    expect(await platform.client.messages(poison.id)).toMatchObject([{ status: 'failed', content: { text: 'poison' } }])
    expect(successor.hasExited()).toBe(false)
    expect(await metric(platform.url, 'rivulet_worker_deaths_total')).toBe(before + 6)
    expect(linesAbout(poison.id, 'the worker of a turn died').map(({ turn: turnNumber, deaths }) => [turnNumber, deaths])).toEqual([
      [1, 1],
      [1, 2],
      [1, 3],
    ])
    for (const { task } of [...good, { task: poison }]) expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('does not use up an attempt that may fail', async () => {
    const shared = onlyWorker()
    const attempts = { 1: [fail('one')], 2: [say(0, 'x'), exit], 3: [say(0, 'y')] }
    const { task } = await platform.client.createTask({ agent: 'scripted', params: { attempts }, maxAttempts: 2 })
    await shared.exited
    await platform.startWorker()
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns).toMatchObject([{ status: 'completed', attempt: 3 }])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })
})

function onlyWorker(): PlatformProcess {
  const [worker, ...others] = platform.workers.filter(({ hasExited }) => !hasExited())
  if (!worker || others.length > 0) throw new Error('There should be one worker')
  return worker
}

function linesAbout(task: string, message: string) {
  return platform.apis.flatMap(({ lines }) => lines.filter(line => line.msg === message && line.task === task))
}

/** The moments at which a viewer held messages of two attempts at one turn. */
function mixtures(viewer: Viewer): string[] {
  return statesOf(viewer).flatMap(state => {
    const attempts = new Set(agentMessages(state).map(({ turn: turnNumber, attempt }) => `${turnNumber}.${attempt}`))
    return attempts.size > 1 ? [`${state.cursor}: ${[...attempts]}`] : []
  })
}

function attemptsSeen(viewer: Viewer): number[] {
  return [...new Set(statesOf(viewer).flatMap(state => agentMessages(state).map(({ attempt }) => attempt)))]
}

function statesOf(viewer: Viewer): TaskState[] {
  let state = emptyState
  return viewer.frames().map(frame => {
    state = foldFrame(state, frame)
    return state
  })
}

function agentMessages(state: TaskState) {
  return messagesOf(state).filter(({ author }) => author === 'agent')
}
