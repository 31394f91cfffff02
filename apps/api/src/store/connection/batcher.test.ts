import { DatabaseError } from 'pg'
import { expect, test } from 'vitest'
import { createBatcher, createTransactionBatcher } from './batcher.ts'

test('what is asked in one tick is asked together, and each gets its own answer', async () => {
  const { gather, asked } = open()
  expect(await Promise.all([1, 2, 3].map(gather))).toEqual([10, 20, 30])
  expect(asked).toEqual([[1, 2, 3]])
})

test('while one question is on its way the next ones gather, up to as many as may be asked at once', async () => {
  const { gather, asked } = open()
  const first = gather(1)
  await expect.poll(() => asked.length).toBe(1)
  const rest = [2, 3, 4, 5].map(gather)
  expect(await Promise.all([first, ...rest])).toEqual([10, 20, 30, 40, 50])
  expect(asked).toEqual([[1], [2, 3, 4], [5]])
})

test('a statement that fails rejects its own callers, and the next one runs', async () => {
  const { gather } = open()
  await expect(Promise.all([1, -1].map(gather))).rejects.toThrow('below zero')
  expect(await gather(2)).toBe(20)
})

test('a batch that does not return delays the next one by a second at most', async () => {
  const gather = createBatcher(1, async ([item]: readonly string[]) => (item === 'stuck' ? new Promise<never>(() => {}) : [item]))
  void gather('stuck')
  expect(await gather('next')).toBe('next')
})

test('what a batch of transactions left out, and the second of two with the same key, is done alone, and none waits for that', async () => {
  const { transact, asked, release } = openTransactions()
  const [held, first, second, none] = ['held', 'a1', 'a2', 'none'].map(transact)
  expect(await Promise.all([first, second, none])).toEqual(['a1', 'a2', null])
  expect(await transact('b1')).toBe('b1')
  expect(asked).toEqual([['none', 'a1', 'held'], ['held!'], ['a2!'], ['b1']])
  release()
  expect(await held).toBe('held')
})

test('each of a batch that Postgres refuses is done alone, and fails alone', async () => {
  const { transact } = openTransactions()
  const results = await Promise.allSettled(['a1', 'refused', 'b1'].map(transact))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('a batch whose connection broke fails as a whole, because it may have been committed', async () => {
  const { transact, asked } = openTransactions()
  const results = await Promise.allSettled(['a1', 'broken'].map(transact))
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(asked).toHaveLength(1)
})

/** Its items have the first letter as their key. */
function openTransactions() {
  const asked: string[][] = []
  let release = () => {}
  const free = new Promise<void>(resolve => {
    release = resolve
  })
  const transact = createTransactionBatcher<string, string | null>(
    10,
    ([letter = '']) => letter,
    async (items, { isAlone }) => {
      asked.push(items.map(item => (isAlone ? `${item}!` : item)))
      if (items.includes('refused')) throw Object.assign(new DatabaseError('no', 0, 'error'), { code: '23505' })
      if (items.includes('broken')) throw Object.assign(new Error('read'), { code: 'ECONNRESET' })
      if (isAlone && items.includes('held')) await free
      return items.map(item => (item === 'none' ? null : item === 'held' && !isAlone ? undefined : item))
    },
  )
  return { transact, asked, release: () => release() }
}

function open() {
  const asked: number[][] = []
  const gather = createBatcher(3, async (items: readonly number[]) => {
    asked.push([...items])
    await new Promise(resolve => setImmediate(resolve))
    if (items.some(item => item < 0)) throw new Error('below zero')
    return items.map(item => item * 10)
  })
  return { gather, asked }
}
