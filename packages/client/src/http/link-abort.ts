/** A controller of our own that also fires with the caller's signal; `unlink` lets go of it, however long that signal lives. */
export function linkAbort(signal: AbortSignal | undefined): { controller: AbortController; unlink: () => void } {
  const controller = new AbortController()
  if (signal?.aborted) forward()
  else signal?.addEventListener('abort', forward)
  return { controller, unlink: () => signal?.removeEventListener('abort', forward) }

  function forward(): void {
    controller.abort(signal?.reason)
  }
}
