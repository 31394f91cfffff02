import { expect, test } from 'vitest'
import { interleave, median } from '../bench.ts'
import { goalTable, isMet } from './table.ts'

const atMost = { text: 'cost', atMost: 1.3, value: () => 1.3 }
const atLeast = { text: 'rate', atLeast: 5, value: () => 4.9 }

test('a goal is met at its bound and missed beyond it', () => {
  expect(isMet(atMost, 1.3)).toBe(true)
  expect(isMet(atMost, 1.31)).toBe(false)
  expect(isMet(atLeast, 5)).toBe(true)
  expect(isMet(atLeast, 4.99)).toBe(false)
})

test('the table shows which goals were missed, and which were not measured', () => {
  const lines = goalTable([
    { workload: 'a', goal: atMost, value: 1.3 },
    { workload: 'b', goal: atLeast, value: 4.9 },
    { workload: 'c', goal: atLeast, value: null },
  ]).split('\n')
  expect(lines.slice(2)).toEqual([
    '| a | cost | ≤ 1.3 | 1.30 | met |',
    '| b | rate | ≥ 5 | 4.90 | **missed** |',
    '| c | rate | ≥ 5 | – | not measured |',
  ])
})

test('runs alternate, and the result is the median of each figure', async () => {
  const order: string[] = []
  const times: Record<string, number[]> = { a: [3, 1, 2], b: [10, 30, 20] }
  const results = await interleave({ rounds: 3, note: () => {} }, [{ name: 'a' }, { name: 'b' }], async ({ name }) => {
    order.push(name)
    return { ms: times[name]?.shift() ?? 0 }
  })
  expect(order).toEqual(['a', 'b', 'a', 'b', 'a', 'b'])
  expect(results.get('a')).toEqual({ ms: 2 })
  expect(results.get('b')).toEqual({ ms: 20 })
})

test('a contestant that fails is left out, with the reason', async () => {
  const notes: string[] = []
  const run = async ({ name }: { name: string }) => {
    if (name !== 'good') throw new Error('it broke')
    return { ms: 1 }
  }
  const results = await interleave({ rounds: 2, note: line => notes.push(line) }, [{ name: 'bad' }, { name: 'good' }], run)
  expect([...results.keys()]).toEqual(['good'])
  expect(notes).toEqual(['bad is left out: it broke'])
})

test('the median of an even number of values is the mean of the middle two', () => {
  expect(median([4, 1, 3, 2])).toBe(2.5)
  expect(median([7])).toBe(7)
})
