import type { Append, AppendAnswer } from '@rivulet/broker'
import { expect, test } from 'vitest'
import { createAppender } from './appender.ts'

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

test('where many turns wait, a call waits a moment for what else there is', async () => {
  const { appender, calls } = open(batch => batch.map(() => 'ok'))
  const names = Array.from({ length: 64 }, (_, i) => `turn ${i}`)
  const many = names.map(task => appender.append(append(task)))
  // Many times as many as a few turns would have been sent after.
  for (let i = 0; i < 100; i += 1) await null
  expect(calls).toEqual([])
  await Promise.all([...many, appender.append(append('late'))])
  expect(calls).toEqual([[...names, 'late']])
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

function open(answer: (batch: readonly Append[]) => AppendAnswer[]) {
  const calls: string[][] = []
  const appender = createAppender({
    append: async batch => {
      calls.push(batch.map(({ task }) => task))
      await new Promise(resolve => setImmediate(resolve))
      return answer(batch)
    },
  })
  return { appender, calls }
}
