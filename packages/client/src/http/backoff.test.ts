import { describe, expect, test, vi } from 'vitest'
import { pageWakeUps, pause, retryDelayMs } from './backoff.ts'

const never = () => () => {}

describe('the delay', () => {
  test('doubles from 100 ms to 5 s, and is jittered', () => {
    const longest = [0, 1, 2, 3, 4, 5, 6, 7, 50].map(failures => retryDelayMs(failures, () => 1))
    expect(longest).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000])
    expect([0, 1, 3, 50].map(failures => retryDelayMs(failures, () => 0))).toEqual([100, 100, 400, 2_500])
  })
})

describe('a pause', () => {
  test('ends by itself', async () => {
    await pause(1, { wakeUps: never })
  })

  test('ends at once when woken, and listens no longer', async () => {
    const wakes = new Set<() => void>()
    const paused = pause(1e6, {
      wakeUps: wake => {
        wakes.add(wake)
        return () => wakes.delete(wake)
      },
    })
    for (const wake of wakes) wake()
    await paused
    expect(wakes.size).toBe(0)
  })

  test('is refused or cut short by a signal, with its reason', async () => {
    const reason = new Error('left')
    await expect(pause(1e6, { signal: AbortSignal.abort(reason), wakeUps: never })).rejects.toBe(reason)
    const controller = new AbortController()
    const paused = pause(1e6, { signal: controller.signal, wakeUps: never })
    controller.abort(reason)
    await expect(paused).rejects.toBe(reason)
  })
})

describe('a page wakes', () => {
  test('nothing outside a page', () => {
    expect(() => pageWakeUps(() => {})()).not.toThrow()
  })

  test('when it is online again and when it is looked at again, not when it is hidden', () => {
    const page = new EventTarget()
    const document = Object.assign(new EventTarget(), { visibilityState: 'hidden' })
    vi.stubGlobal('addEventListener', page.addEventListener.bind(page))
    vi.stubGlobal('removeEventListener', page.removeEventListener.bind(page))
    vi.stubGlobal('document', document)
    const wake = vi.fn()
    const stop = pageWakeUps(wake)
    document.dispatchEvent(new globalThis.Event('visibilitychange'))
    expect(wake).toHaveBeenCalledTimes(0)
    document.visibilityState = 'visible'
    document.dispatchEvent(new globalThis.Event('visibilitychange'))
    expect(wake).toHaveBeenCalledTimes(1)
    page.dispatchEvent(new globalThis.Event('online'))
    expect(wake).toHaveBeenCalledTimes(2)
    stop()
    page.dispatchEvent(new globalThis.Event('online'))
    document.dispatchEvent(new globalThis.Event('visibilitychange'))
    expect(wake).toHaveBeenCalledTimes(2)
    vi.unstubAllGlobals()
  })
})
