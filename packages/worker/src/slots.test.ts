import { expect, test } from 'vitest'
import { createSlots } from './slots.ts'

test('no more turns run at a time than there are slots, whichever agents they are of', async () => {
  const slots = createSlots(
    2,
    () => 2,
    () => {},
  )
  const ends: (() => void)[] = []
  const work = () => new Promise<void>(resolve => ends.push(resolve))
  const first = slots.use('a', work)
  const second = slots.use('b', work)
  expect(await slots.use('a', work)).toBe(false)
  expect(await slots.use('c', work)).toBe(false)
  ends[0]?.()
  expect(await first).toBe(true)
  const third = slots.use('c', work)
  expect(await slots.use('a', work)).toBe(false)
  for (const end of ends) end()
  expect(await Promise.all([second, third])).toEqual([true, true])
})

test('a turn that throws releases its slot, and the listener sees how many turns run and may run', async () => {
  const seen: [number, number][] = []
  const slots = createSlots(
    2,
    () => 2,
    () => seen.push([slots.roomOf('a').used, slots.roomOf('b').most]),
  )
  await expect(slots.use('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await slots.use('a', async () => {})).toBe(true)
  expect(seen).toEqual([
    [1, 1],
    [0, 2],
    [1, 1],
    [0, 2],
  ])
})

test('an agent uses no more slots than it may, while others have the rest', async () => {
  const slots = createSlots(
    3,
    agent => (agent === 'a' ? 1 : 3),
    () => {},
  )
  expect(slots.roomOf('a')).toEqual({ used: 0, most: 1 })
  const ends: (() => void)[] = []
  const work = () => new Promise<void>(resolve => ends.push(resolve))
  const first = slots.use('a', work)
  expect(await slots.use('a', work)).toBe(false)
  const second = slots.use('b', work)
  for (const end of ends) end()
  expect(await Promise.all([first, second])).toEqual([true, true])
})
