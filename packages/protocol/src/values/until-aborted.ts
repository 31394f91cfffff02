/**
 * Settles like the promise, or rejects with the signal's reason as soon as the signal fires. A rejection of the promise after that is ignored.
 * The listener is removed however the wait ends, because the signal may outlive it by far.
 */
export function untilAborted<T>(promise: PromiseLike<T> | T, signal: AbortSignal | null | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal?.reason)
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
    Promise.resolve(promise)
      .then(resolve, reject)
      .finally(() => signal?.removeEventListener('abort', onAbort))
  })
}
