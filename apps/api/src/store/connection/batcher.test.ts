import { expect, test } from 'vitest'
import { createBatcher } from './batcher.ts'

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
