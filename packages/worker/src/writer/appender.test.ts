import type { Append, AppendResult } from '@rivulet/broker'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { createAppender } from './appender.ts'

const append = (task: string, count = 1): Append => ({
  task,
  epoch: 1,
  first: 1,
  entries: Array.from({ length: count }, () => ({ index: null, json: '{}' })),
})

test('appends of one tick share a call, and each gets its own answer', async () => {
  const { appender, calls } = open(batch => batch.map(({ task }) => (task === 'b' ? 'fenced' : 'ok')))
  expect(await Promise.all(['a', 'b', 'c'].map(task => appender.append(append(task), 1)))).toEqual(['ok', 'fenced', 'ok'])
  expect(calls).toEqual([['a', 'b', 'c']])
})

test('while a call is on its way the next ones gather', async () => {
  const { appender, calls } = open(batch => batch.map(() => 'ok'))
  const first = appender.append(append('a'), 1)
  await expect.poll(() => calls.length).toBe(1)
  const rest = ['b', 'c', 'd'].map(task => appender.append(append(task), 1))
  await Promise.all([first, ...rest])
  expect(calls).toEqual([['a'], ['b', 'c', 'd']])
})

describe('many turns', () => {
  const names = Array.from({ length: 64 }, (_, i) => `turn ${i}`)

  beforeEach(() => {
    const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000)
    return () => clock.mockRestore()
  })

  test('that come after a pause are sent at once', async () => {
    const { appender, calls } = open(batch => batch.map(() => 'ok'))
    const many = names.map(task => appender.append(append(task), 2))
    await manyTicks()
    expect(calls).toEqual([names])
    await Promise.all(many)
  })

  test('that have said more than one word each by the time a call is answered are put off for a moment', async () => {
    const { appender, calls } = open(batch => batch.map(() => 'ok'))
    await appender.append(append('a'), 1)
    const many = names.map(task => appender.append(append(task), 2))
    await manyTicks()
    expect(calls).toEqual([['a']])
    await Promise.all([...many, appender.append(append('late'), 1)])
    expect(calls).toEqual([['a'], [...names, 'late']])
  })

  test('that follow a call of few turns, with one word each, are sent at once', async () => {
    const { appender, calls } = open(batch => batch.map(() => 'ok'))
    await appender.append(append('a'), 1)
    const many = names.map(task => appender.append(append(task), 1))
    await manyTicks()
    expect(calls).toEqual([['a'], names])
    await Promise.all(many)
  })

  test('that follow a call of several turns are sent a moment after it', async () => {
    const { appender, calls } = open(batch => batch.map(() => 'ok'))
    const several = names.slice(0, 5)
    await Promise.all(several.map(task => appender.append(append(task), 1)))
    const many = names.map(task => appender.append(append(task), 1))
    await manyTicks()
    expect(calls).toEqual([several])
    await Promise.all([...many, appender.append(append('late'), 1)])
    expect(calls).toEqual([several, [...names, 'late']])
  })

  test('that come long after a call of several turns are sent at once', async () => {
    const { appender, calls } = open(batch => batch.map(() => 'ok'))
    await Promise.all(names.map(task => appender.append(append(task), 1)))
    vi.mocked(performance.now).mockReturnValue(1_005)
    const many = names.map(task => appender.append(append(task), 1))
    await manyTicks()
    expect(calls).toEqual([names, names])
    await Promise.all(many)
  })

  test('whose entries fill a call are sent at once', async () => {
    const { appender, calls } = open(batch => batch.map(() => 'ok'))
    await appender.append(append('a'), 1)
    const many = names.map(task => appender.append(append(task, 20), 40))
    await manyTicks()
    expect(calls).toEqual([['a'], names.slice(0, 50)])
    await Promise.all(many)
  })

  /** Many times as many as a call takes to be sent. */
  async function manyTicks(): Promise<void> {
    for (let i = 0; i < 100; i += 1) await null
  }
})

test('a call has at most a thousand entries, but for an append that has more by itself', async () => {
  const { appender, calls } = open(batch => batch.map(() => 'ok'))
  await Promise.all([append('a', 600), append('b', 600), append('c', 2_000), append('d', 1)].map(wanted => appender.append(wanted, 1)))
  expect(calls).toEqual([['a'], ['b'], ['c'], ['d']])
})

test('a call that fails fails its appends, and the next ones are sent', async () => {
  let calls = 0
  const { appender } = open(batch => {
    calls += 1
    if (calls === 1) throw new Error('away')
    return batch.map(() => 'ok')
  })
  const first = appender.append(append('a'), 1)
  await expect(first).rejects.toThrow('away')
  expect(await appender.append(append('a'), 1)).toBe('ok')
})

function open(result: (batch: readonly Append[]) => AppendResult[]) {
  const calls: string[][] = []
  const appender = createAppender({
    append: async batch => {
      calls.push(batch.map(({ task }) => task))
      await new Promise(resolve => setImmediate(resolve))
      return result(batch)
    },
  })
  return { appender, calls }
}
