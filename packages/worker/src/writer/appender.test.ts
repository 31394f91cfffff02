import type { Append, AppendResult } from '@rivulet/broker'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { type Appender, createAppender } from './appender.ts'

const append = (task: string, count = 1): Append => ({
  task,
  epoch: 1,
  first: 1,
  entries: Array.from({ length: count }, () => ({ index: null, json: '{}' })),
})

test('appends of one tick share a call, and each gets its own answer', async () => {
  const { appender, calls } = open(batch => batch.map(({ task }) => (task === 'b' ? 'fenced' : 'ok')))
  expect(await Promise.all(['a', 'b', 'c'].map(task => appender.append(append(task))))).toEqual(['ok', 'fenced', 'ok'])
  expect(calls).toEqual([['a', 'b', 'c']])
})

test('while a call is on its way the next ones gather', async () => {
  const { appender, calls } = open(batch => batch.map(() => 'ok'))
  const first = appender.append(append('a'))
  await expect.poll(() => calls.length).toBe(1)
  const rest = ['b', 'c', 'd'].map(task => appender.append(append(task)))
  await Promise.all([first, ...rest])
  expect(calls).toEqual([['a'], ['b', 'c', 'd']])
})

describe('several turns', () => {
  const names = Array.from({ length: 5 }, (_, i) => `turn ${i}`)

  beforeEach(() => {
    const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000)
    return () => clock.mockRestore()
  })

  test('that follow a call of fewer are sent at once', async () => {
    const { appender, calls } = open(batch => batch.map(() => 'ok'))
    await appendAll(appender, names.slice(1))
    const all = appendAll(appender, names)
    await manyTicks()
    expect(calls).toEqual([names.slice(1), names])
    await all
  })

  test('that follow a call of as many are sent a moment after it', async () => {
    const { appender, calls } = open(batch => batch.map(() => 'ok'))
    await appendAll(appender, names)
    const all = appendAll(appender, names)
    await manyTicks()
    expect(calls).toEqual([names])
    await Promise.all([all, appender.append(append('late'))])
    expect(calls).toEqual([names, [...names, 'late']])
  })

  test.each([
    { when: 'idle', isBusy: false, ms: 5 },
    { when: 'busy', isBusy: true, ms: 25 },
  ])('have $ms ms between two calls of a worker that is $when', async ({ isBusy, ms }) => {
    const { appender, calls } = open(
      batch => batch.map(() => 'ok'),
      () => isBusy,
    )
    await appendAll(appender, names)
    vi.mocked(performance.now).mockReturnValue(1_000 + ms - 1)
    const early = appendAll(appender, names)
    await manyTicks()
    expect(calls).toEqual([names])
    await early
    vi.mocked(performance.now).mockReturnValue(1_000 + 2 * ms - 1)
    const all = appendAll(appender, names)
    await manyTicks()
    expect(calls).toEqual([names, names, names])
    await all
  })

  test('are followed by a turn that runs alone, whose first append waits and whose second does not', async () => {
    const { appender, calls } = open(batch => batch.map(() => 'ok'))
    await appendAll(appender, names)
    const first = appender.append(append('alone'))
    await manyTicks()
    expect(calls).toEqual([names])
    await first
    const second = appender.append(append('alone'))
    await manyTicks()
    expect(calls).toEqual([names, ['alone'], ['alone']])
    await second
  })

  test('whose call failed are sent again, a moment after it', async () => {
    let isAway = true
    const { appender, calls } = open(batch => {
      if (isAway) throw new Error('away')
      return batch.map(() => 'ok')
    })
    await expect(appendAll(appender, names)).rejects.toThrow('away')
    isAway = false
    await appendAll(appender, names)
    expect(calls).toEqual([names, names])
  })

  test('whose checks of their logs fill a call are sent at once', async () => {
    const { appender, calls } = open(batch => batch.map(() => 'ok'))
    const checks = Array.from({ length: 2_000 }, (_, i) => `check ${i}`)
    await appendAll(appender, names)
    const all = Promise.all(checks.map(task => appender.append(append(task, 0))))
    await manyTicks()
    expect(calls).toEqual([names, checks.slice(0, 1_000)])
    await all
    expect(calls).toHaveLength(3)
  })

  test('whose entries fill a call are sent at once', async () => {
    const { appender, calls } = open(batch => batch.map(() => 'ok'))
    await appendAll(appender, names)
    const all = Promise.all(names.map(task => appender.append(append(task, 250))))
    await manyTicks()
    expect(calls).toEqual([names, names.slice(0, 4)])
    await all
  })

  function appendAll(appender: Appender, tasks: readonly string[]): Promise<unknown> {
    return Promise.all(tasks.map(task => appender.append(append(task))))
  }

  /** Many times as many as a call takes to be sent. */
  async function manyTicks(): Promise<void> {
    for (let i = 0; i < 100; i += 1) await null
  }
})

test('a call has at most a thousand entries, but for an append that has more by itself', async () => {
  const { appender, calls } = open(batch => batch.map(() => 'ok'))
  await Promise.all([append('a', 600), append('b', 600), append('c', 2_000), append('d', 1)].map(wanted => appender.append(wanted)))
  expect(calls).toEqual([['a'], ['b'], ['c'], ['d']])
})

test('a call that fails fails its appends, and the next ones are sent', async () => {
  let calls = 0
  const { appender } = open(batch => {
    calls += 1
    if (calls === 1) throw new Error('away')
    return batch.map(() => 'ok')
  })
  const first = appender.append(append('a'))
  await expect(first).rejects.toThrow('away')
  expect(await appender.append(append('a'))).toBe('ok')
})

function open(result: (batch: readonly Append[]) => AppendResult[], isBusy = () => false) {
  const calls: string[][] = []
  const log = {
    append: async (batch: readonly Append[]) => {
      calls.push(batch.map(({ task }) => task))
      await new Promise(resolve => setImmediate(resolve))
      return result(batch)
    },
  }
  const appender = createAppender({ log, isBusy })
  return { appender, calls }
}
