/** Of `AbortSignal`, which the types of this package do not know, because it runs without Node and without a browser. */
type Signal = {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void, options: { once: true }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/**
 * Settles like the promise, or rejects with the signal's reason as soon as the signal fires. A rejection of the promise after that is ignored.
 * The listener is removed however the wait ends, because the signal may outlive it by far.
 */
export function untilAborted<T>(promise: PromiseLike<T> | T, signal: Signal | null | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal?.reason)
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
    Promise.resolve(promise)
      .then(resolve, reject)
      .finally(() => signal?.removeEventListener('abort', onAbort))
  })
}
