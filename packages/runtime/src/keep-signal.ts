/**
 * Keeps an `AbortSignal.timeout` until it fires, for use in `AbortSignal.any`. Node collects a timeout that only `any` refers to, and then it never fires; one
 * that has a listener is not collected.
 */
export function keepSignal<S extends Listened>(timeout: S): S {
  timeout.addEventListener('abort', () => {})
  return timeout
}

/** Without the type of Node or of a browser, because this package has neither. */
type Listened = { addEventListener(type: 'abort', listener: () => void): void }
