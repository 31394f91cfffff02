import type { JobEnd } from '@rivulet/broker'
import type { TurnId } from '@rivulet/protocol'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createTurnPolls } from './turn-polls.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const always = async () => true
const patience = () => new AbortController().signal

test('a poll gets one turn of its agents, and its job is done when the turn is claimed', async () => {
  const { polls, bring } = open()
  const [first, second] = [
    polls.next({ queues: ['a', 'b'], reaches: always }, patience()),
    polls.next({ queues: ['b'], reaches: always }, patience()),
  ]
  const job = bring('b', 'one')
  expect(await first).toEqual({ queue: 'b', turnId: 'one' })
  const other = bring('b', 'two')
  expect(await second).toEqual({ queue: 'b', turnId: 'two' })
  expect(await bring('b', 'three')).toEqual({ backInMs: 20 })
  polls.settle('one', 'done')
  polls.settle('two', { backInMs: 700 })
  expect(await Promise.all([job, other])).toEqual(['done', { backInMs: 700 }])
})

test('a poll for several turns gets those that come with the first, and no more than it may', async () => {
  const { polls, bring, limits } = open()
  const poll = polls.nextTurns({ queues: ['a', 'b'], reaches: always }, 3, patience())
  await vi.advanceTimersByTimeAsync(20)
  expect(limits).toEqual([3, 3])
  void bring('a', 'one')
  void bring('b', 'two')
  await vi.advanceTimersByTimeAsync(5)
  expect(await poll).toEqual([
    { queue: 'a', turnId: 'one' },
    { queue: 'b', turnId: 'two' },
  ])
  expect(await bring('a', 'three')).toEqual({ backInMs: 20 })
  const full = polls.nextTurns({ queues: ['a'], reaches: always }, 2, patience())
  for (const turn of ['four', 'five']) void bring('a', turn)
  expect(await full).toHaveLength(2)
})

test('a turn that is not claimed goes back to the queue, because the reply may be lost', async () => {
  const { polls, bring } = open()
  const poll = polls.next({ queues: ['a'], reaches: always }, patience())
  const job = bring('a', 'one')
  await poll
  await vi.advanceTimersByTimeAsync(5_000)
  expect(await job).toEqual({ backInMs: 1 })
})

test('a turn out of the reach of every open poll goes back, and the polls stay open', async () => {
  const { polls, bring } = open()
  const strange = polls.next({ queues: ['a'], reaches: async () => false }, patience())
  expect(await bring('a', 'one')).toEqual({ backInMs: 1_000 })
  const poll = polls.next({ queues: ['a'], reaches: always }, patience())
  void bring('a', 'one')
  expect(await poll).toEqual({ queue: 'a', turnId: 'one' })
  await polls.close()
  expect(await strange).toBeNull()
})

test('as many jobs are taken as polls are open and turns are not claimed yet, and the consumer of an agent without polls is closed', async () => {
  const { polls, bring, limits, closed } = open()
  const leaving = new AbortController()
  const poll = polls.next({ queues: ['a'], reaches: always }, patience())
  void polls.next({ queues: ['a'], reaches: always }, leaving.signal)
  await vi.advanceTimersByTimeAsync(20)
  const job = bring('a', 'one')
  await poll
  await vi.advanceTimersByTimeAsync(20)
  expect(limits).toEqual([2])
  polls.settle('one', 'done')
  await job
  await vi.advanceTimersByTimeAsync(20)
  leaving.abort()
  await vi.advanceTimersByTimeAsync(20)
  expect(limits).toEqual([2, 1, 0])
  expect(closed).toEqual([])
  await vi.advanceTimersByTimeAsync(60_000)
  expect(closed).toEqual(['a'])
})

function open() {
  const runs = new Map<string, (turnId: TurnId) => Promise<JobEnd>>()
  const limits: number[] = []
  const closed: string[] = []
  const polls = createTurnPolls((agent, run) => {
    runs.set(agent, run)
    return { setConcurrency: turns => void limits.push(turns), pause: async () => {}, close: async () => void closed.push(agent) }
  })
  return { polls, bring: (agent: string, turnId: TurnId) => runs.get(agent)?.(turnId), limits, closed }
}
