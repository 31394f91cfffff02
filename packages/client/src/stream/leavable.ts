/**
 * An async iterator that can be stopped while it waits. A generator completes `return` only after its pending step, and a stream's step may take
 * minutes; here `return` aborts that step.
 */
import { linkAbort } from '../http/link-abort.ts'

export function leavable<T>(
  signal: AbortSignal | undefined,
  generate: (signal: AbortSignal) => AsyncGenerator<T, void, void>,
): AsyncIterableIterator<T, void, void> {
  const { controller, unlink } = linkAbort(signal)
  const left = Symbol('left')
  const generator = generate(controller.signal)
  return {
    next,
    return: leave,
    [Symbol.asyncIterator]() {
      return this
    },
  }

  async function next(): Promise<IteratorResult<T, void>> {
    try {
      const result = await generator.next()
      if (result.done) unlink()
      return result
    } catch (error) {
      unlink()
      if (error === left) return { done: true, value: undefined }
      throw error
    }
  }

  async function leave(): Promise<IteratorResult<T, void>> {
    unlink()
    controller.abort(left)
    await generator.return().catch(() => {})
    return { done: true, value: undefined }
  }
}
