/** The SharedWorker of the console: one stream of tasks and one of the feed for all tabs that have the same key. */
import { feedName, type Places, SharedStream } from './shared-stream.ts'
import type { FromWorker, ToWorker } from './stream-request.ts'

const streams = new Map<string, SharedStream>()

;(globalThis as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports: [tab] }) => {
  if (!tab) return
  tab.onmessage = ({ data, ports: [port] }: MessageEvent<ToWorker>) => {
    if (port) open(data, port)
  }
}

function open({ places: given, isTagged, authorization }: ToWorker, port: MessagePort): void {
  const places = new Map(given)
  const kind = places.has(feedName) ? 'feed' : 'tasks'
  const key = `${kind} ${authorization ?? ''}`
  const stream = streams.get(key) ?? new SharedStream({ open: (places, signal) => request(places, authorization, signal) })
  streams.set(key, stream)
  const post = (message: FromWorker) => port.postMessage(message)
  const reader = {
    ...{ places, isTagged },
    head: (head: Extract<FromWorker, { kind: 'head' }>['head']) => post({ kind: 'head', head }),
    write: (frame: string) => post({ kind: 'frame', frame }),
    end: (isBroken: boolean) => post({ kind: 'end', isBroken }),
  }
  // Any message means that the tab leaves; `close` is that of a tab that crashed, where the browser reports it.
  const leave = () => {
    stream.leave(reader)
    port.close()
  }
  port.onmessage = leave
  port.addEventListener('close', leave)
  stream.join(reader)
}

function request(places: Places, authorization: string | null, signal: AbortSignal): Promise<Response> {
  const headers = { accept: 'text/event-stream', ...(authorization !== null && { authorization }) }
  const init: RequestInit = { cache: 'no-store', signal, headers }
  if (places.has(feedName)) {
    const after = places.get(feedName)
    return fetch(`/v1/feed${after ? `?after=${after}` : ''}`, init)
  }
  const body = JSON.stringify({ tasks: Object.fromEntries(places), follow: true })
  return fetch('/v1/events', { ...init, method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body })
}
