import { expect, test, vi } from 'vitest'
import type { TaskView, ViewState } from '../task/task-view.ts'
import { createFrameStore } from './frame-store.ts'

function fakeView() {
  const listeners = new Set<() => void>()
  const state = { current: { cursor: '0-0' } as unknown as ViewState }
  const view: TaskView = {
    get current() {
      return state.current
    },
    subscribe: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const change = (cursor: ViewState['cursor']) => {
    state.current = { ...state.current, cursor }
    for (const listener of listeners) listener()
  }
  return { view, change, listeners }
}

function fakeFrames() {
  const waiting = new Map<number, () => void>()
  let last = 0
  return {
    waiting,
    request: (callback: () => void) => {
      last += 1
      waiting.set(last, callback)
      return last
    },
    cancel: (frame: unknown) => waiting.delete(frame as number),
    draw() {
      const due = [...waiting.values()]
      waiting.clear()
      for (const callback of due) callback()
    },
  }
}

test('however often a view changes, subscribers are notified once per frame, and see no other value before', () => {
  const { view, change } = fakeView()
  const frames = fakeFrames()
  const store = createFrameStore(view, frames)
  const listener = vi.fn()
  store.subscribe(listener)
  for (let seq = 1; seq <= 1_000; seq += 1) change(`1-${seq}`)
  expect(store.current().cursor).toBe('0-0')
  expect(frames.waiting.size).toBe(1)
  frames.draw()
  expect(store.current().cursor).toBe('1-1000')
  expect(listener).toHaveBeenCalledTimes(1)
  frames.draw()
  expect(listener).toHaveBeenCalledTimes(1)
})

test('a former subscriber is not notified, and a new one sees the current value', () => {
  const { view, change, listeners } = fakeView()
  const frames = fakeFrames()
  const store = createFrameStore(view, frames)
  const listener = vi.fn()
  const leave = store.subscribe(listener)
  change('1-1')
  leave()
  expect([frames.waiting.size, listeners.size]).toEqual([0, 0])
  change('1-2')
  store.subscribe(listener)
  expect(store.current().cursor).toBe('1-2')
  expect(listener).not.toHaveBeenCalled()
})

test('without a screen there are timers', async () => {
  const { view, change } = fakeView()
  const store = createFrameStore(view)
  await new Promise<void>(resolve => {
    store.subscribe(resolve)
    change('1-1')
  })
  expect(store.current().cursor).toBe('1-1')
})
