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
