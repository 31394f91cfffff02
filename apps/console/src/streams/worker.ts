/** The SharedWorker of the console: one stream of tasks and one of the feed for all tabs that have the same key. */
import { feedName, type Places, SharedStream } from './shared-stream.ts'
import { type FromWorker, type Ping, ping, type ToWorker } from './stream-request.ts'

/** By key. */
const streams = new Map<string | null, { feed: SharedStream; tasks: SharedStream }>()

;(globalThis as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports: [tab] }) => {
  if (!tab) return
  tab.onmessage = ({ data, ports: [port] }: MessageEvent<ToWorker | Ping>) => {
    if (data === ping) tab.postMessage(ping)
    else if (port) open(data, port)
  }
}

function open({ places: given, isTagged, authorization }: ToWorker, port: MessagePort): void {
  const places = new Map(given)
  const both = streams.get(authorization) ?? streamsFor(authorization)
  streams.set(authorization, both)
  const stream = places.has(feedName) ? both.feed : both.tasks
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

function streamsFor(authorization: string | null) {
  const open = (places: Places, signal: AbortSignal) => request(places, authorization, signal)
  const tasks = new SharedStream({ open })
  const feed = new SharedStream({ open, onFrame: frame => tasks.wake(wokenBy(frame)), onLive: isLive => tasks.watch(isLive) })
  return { feed, tasks }
}

/** The task that goes on after its end, or is gone. */
function wokenBy(frame: string): string[] {
  if (!/^event: (turn\.queued|task\.deleted)$/m.test(frame)) return []
  return [/"task":"([\da-f-]{36})"/.exec(frame)?.[1] ?? '']
}

function request(places: Places, authorization: string | null, signal: AbortSignal): Promise<Response> {
  const headers = { accept: 'text/event-stream', ...(authorization !== null && { authorization }) }
  const init: RequestInit = { cache: 'no-store', signal, headers }
  if (places.has(feedName)) {
    const after = places.get(feedName)
    return fetch(`/v1/feed${after ? `?after=${after}` : ''}`, init)
  }
  const body = JSON.stringify({ tasks: Object.fromEntries(places) })
  return fetch('/v1/events', { ...init, method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body })
}
