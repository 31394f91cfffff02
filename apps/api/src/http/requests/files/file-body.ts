/**
 * The body of an upload, as fast as the store takes it. The API counts as it reads, so a body that is too large is refused where it exceeds the limit,
 * and a client that sends nothing for too long is refused then.
 */
import type { IncomingMessage } from 'node:http'
import { RivuletError } from '@rivulet/protocol'
import { allowSlowBody } from '../request-head.ts'

type BodyLimits = {
  maxBytes: number
  tooLarge: () => RivuletError
  stallMs: number
  /** When this process cannot wait any longer. */
  signal: AbortSignal
}

/** The lowest speed of an upload, measured over `stallMs`: a client that sends a byte now and then holds a place as one that sends nothing does. */
const lowestBytesPerSecond = 32 * 1024
/** How long a refused client may go on sending. Closed at once, the connection would be reset, and the refusal lost with it. */
const lingerMs = 2_000

export async function* readFileBody(request: IncomingMessage, { maxBytes, tooLarge, stallMs, signal }: BodyLimits): AsyncGenerator<Buffer> {
  const endSlowBody = allowSlowBody(request.socket)
  // Not `for await`: that destroys the connection when it stops early, and the response would not be sent.
  const chunks = request[Symbol.asyncIterator]()
  const progressBytes = (stallMs / 1_000) * lowestBytesPerSecond
  let size = 0
  let recent = 0
  // Only the time in which the client is waited for counts, not that of the store.
  let waitMs = stallMs
  try {
    for (;;) {
      const since = performance.now()
      const { done, value } = await within(chunks.next(), waitMs)
      if (done) return
      const chunk = value as Buffer
      size += chunk.length
      recent += chunk.length
      const hasProgress = recent >= progressBytes
      waitMs = hasProgress ? stallMs : Math.max(1, waitMs - (performance.now() - since))
      if (hasProgress) recent = 0
      if (size > maxBytes) throw tooLarge()
      yield chunk
    }
  } finally {
    endSlowBody()
    if (!request.complete) linger(request)
  }

  async function within(next: Promise<IteratorResult<unknown>>, ms: number): Promise<IteratorResult<unknown>> {
    let stop = () => {}
    const refused = new Promise<never>((_, reject) => {
      const timer = setTimeout(() => reject(new RivuletError('request_timeout', `Too little of the body arrived within ${stallMs} ms`)), ms)
      const onAbort = () => reject(new RivuletError('draining', 'This process is stopping'))
      signal.addEventListener('abort', onAbort, { once: true })
      stop = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
      }
    })
    const arrived = next.catch(cause => {
      throw new RivuletError('bad_request', 'The caller closed the upload before Content-Length bytes', { cause })
    })
    return Promise.race([arrived, refused]).finally(stop)
  }
}

const lingering = new WeakSet<IncomingMessage>()

/** Whether the rest of a refused upload is read while its response is sent. */
export function isLingering(request: IncomingMessage): boolean {
  return lingering.has(request)
}

function linger(request: IncomingMessage): void {
  lingering.add(request)
  // A stream whose iterator still listens would not flow.
  request.removeAllListeners('readable').resume()
  const timer = setTimeout(() => request.complete || request.socket.destroy(), lingerMs)
  request.socket.once('close', () => clearTimeout(timer))
}
