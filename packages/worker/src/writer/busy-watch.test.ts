import { expect, test } from 'vitest'
import { createBusyWatch, type LoopTimes } from './busy-watch.ts'

test('a thread is busy by its last window of a tenth of a second', () => {
  const { isBusy, pass } = open()
  expect(isBusy()).toBe(false)
  pass(71, 29)
  expect(isBusy()).toBe(true)
  pass(0, 99)
  expect(isBusy(), 'the window is not complete').toBe(true)
  pass(0, 1)
  expect(isBusy()).toBe(false)
  pass(70, 30)
  expect(isBusy()).toBe(false)
})

test('a window of a second or more says nothing of now', () => {
  const { isBusy, pass } = open()
  pass(1_000, 0)
  expect(isBusy()).toBe(false)
  pass(100, 0)
  expect(isBusy()).toBe(true)
})

test('a thread that works without a pause is busy by its own event loop', async () => {
  const isBusy = createBusyWatch()
  await expect.poll(() => workFor(200) && isBusy()).toBe(true)
})

function workFor(ms: number): boolean {
  const end = performance.now() + ms
  while (performance.now() < end);
  return true
}

function open() {
  let times: LoopTimes = { active: 50, idle: 500 }
  const pass = (active: number, idle: number) => {
    times = { active: times.active + active, idle: times.idle + idle }
  }
  return { pass, isBusy: createBusyWatch(() => times) }
}
