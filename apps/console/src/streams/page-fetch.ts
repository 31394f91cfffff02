/**
 * The `fetch` of the page. Event streams come by the connection that all tabs share, and are open only while the page is visible: a browser has six
 * connections to a server, and a tab in the background must not hold one. Where the browser has no SharedWorker, each visible tab has streams of its own.
 */
import { type FromWorker, ping, sharedRequestOf, type ToWorker } from './stream-request.ts'

const pingMs = 10_000

let worker: SharedWorker | null = null

/** @param isShared false for credentials that the shared streams do not take: the token of one task */
export function pageFetch(isShared: boolean): typeof fetch {
  if (isShared && typeof SharedWorker === 'function') worker ??= startWorker()
  return async (input, init = {}) => {
    if (new Headers(init.headers).get('accept') !== 'text/event-stream') return fetch(input, init)
    await untilVisible(init.signal)
    const signal = untilHidden(init.signal)
    const shared = isShared && worker ? sharedRequestOf(String(input), init) : null
    return shared && worker ? openShared(worker, shared, signal) : fetch(input, { ...init, signal })
  }
}

/** A browser reports that a worker could not be loaded, and not that it died: then a ping stays without a response, and the streams begin anew. */
function startWorker(): SharedWorker {
  const started = new SharedWorker(new URL('./worker.ts', import.meta.url), { type: 'module', name: 'rivulet' })
  let isAlive = true
  started.port.onmessage = () => {
    isAlive = true
  }
  const timer = setInterval(() => {
    if (document.visibilityState !== 'visible') return
    if (!isAlive) return replace(startWorker())
    isAlive = false
    started.port.postMessage(ping)
  }, pingMs)
  started.onerror = () => replace(null)
  return started

  function replace(next: SharedWorker | null): void {
    clearInterval(timer)
    worker = next
    for (const controller of [...openStreams]) controller.abort()
  }
}

/** Resolves with the head of the response, as `fetch` does. */
function openShared({ port: toWorker }: SharedWorker, request: ToWorker, signal: AbortSignal): Promise<Response> {
  const { port1: port, port2 } = new MessageChannel()
  const encoder = new TextEncoder()
  let body: ReadableStreamDefaultController<Uint8Array> | null = null
  return new Promise((resolve, reject) => {
    const leave = () => {
      port.postMessage(null)
      port.close()
    }
    const fail = () => {
      leave()
      if (body) body.error(signal.reason)
      else reject(signal.reason)
    }
    if (signal.aborted) return fail()
    signal.addEventListener('abort', fail)
    port.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      switch (data.kind) {
        case 'head':
          resolve(responseOf(data.head))
          break
        case 'frame':
          body?.enqueue(encoder.encode(data.frame))
          break
        case 'end':
          signal.removeEventListener('abort', fail)
          port.close()
          if (!data.isBroken) body?.close()
          else if (body) body.error(new TypeError('The connection broke'))
          else reject(new TypeError('No response'))
          break
        default:
          data satisfies never
      }
    }
    toWorker.postMessage(request, [port2])

    function responseOf({ status, contentType, retryAfter, body: text }: Extract<FromWorker, { kind: 'head' }>['head']): Response {
      const headers = { 'content-type': contentType, ...(retryAfter !== null && { 'retry-after': retryAfter }) }
      if (status !== 200) {
        signal.removeEventListener('abort', fail)
        port.close()
        return new Response(status === 204 ? null : text, { status, headers })
      }
      const stream = new ReadableStream<Uint8Array>({
        start: controller => {
          body = controller
        },
        cancel: () => {
          signal.removeEventListener('abort', fail)
          leave()
        },
      })
      return new Response(stream, { status, headers })
    }
  })
}

const openStreams = new Set<AbortController>()

/** Aborts with the given signal, and when the page is hidden or the shared worker failed. */
function untilHidden(given: AbortSignal | null | undefined): AbortSignal {
  const controller = new AbortController()
  const { signal } = controller
  const close = () => {
    if (given?.aborted || document.visibilityState !== 'visible') controller.abort(given?.reason)
  }
  openStreams.add(controller)
  given?.addEventListener('abort', close)
  document.addEventListener('visibilitychange', close)
  signal.addEventListener('abort', () => {
    openStreams.delete(controller)
    given?.removeEventListener('abort', close)
    document.removeEventListener('visibilitychange', close)
  })
  close()
  return signal
}

function untilVisible(signal: AbortSignal | null | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    document.addEventListener('visibilitychange', look)
    signal?.addEventListener('abort', look)
    look()

    function look(): void {
      if (!signal?.aborted && document.visibilityState !== 'visible') return
      document.removeEventListener('visibilitychange', look)
      signal?.removeEventListener('abort', look)
      if (signal?.aborted) reject(signal.reason)
      else resolve()
    }
  })
}
