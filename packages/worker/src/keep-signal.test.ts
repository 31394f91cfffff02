import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { keepSignal } from '@rivulet/runtime/keep-signal'
import { expect, test } from 'vitest'

test('a timeout that is part of another signal fires, also after a garbage collection', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  const other = new AbortController()
  const waits = Array.from({ length: 50 }, () =>
    firing(AbortSignal.any([AbortSignal.any([keepSignal(AbortSignal.timeout(100))]), other.signal])),
  )
  await new Promise(resolve => setImmediate(resolve))
  for (let i = 0; i < 5; i += 1) collectGarbage()
  expect((await Promise.all(waits)).every(reason => reason.name === 'TimeoutError')).toBe(true)
})

function firing(signal: AbortSignal): Promise<Error> {
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(signal.reason), { once: true }))
}
