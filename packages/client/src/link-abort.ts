/** An own abort controller that also follows the caller's signal; `unlink` removes the listener, however long that signal lives. */
export function linkAbort(signal: AbortSignal | undefined): { controller: AbortController; unlink: () => void } {
  const controller = new AbortController()
  if (signal?.aborted) forward()
  else signal?.addEventListener('abort', forward)
  return { controller, unlink: () => signal?.removeEventListener('abort', forward) }

  function forward(): void {
    controller.abort(signal?.reason)
  }
}

/** The result of a promise, or the signal's reason if that comes first, because the promise may never settle and cannot be aborted. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | null | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal?.reason)
    if (signal?.aborted) abort()
    signal?.addEventListener('abort', abort)
    promise.then(resolve, reject).finally(() => signal?.removeEventListener('abort', abort))
  })
}
