/**
 * AG-UI's agent over HTTP, for agents of Rivulet: it can connect to a thread, resumes where its connection broke, and cancels on the server.
 *
 * The ids of a stream are cursors of the thread. The agent keeps the last one, and connects after it.
 */
import { HttpAgent, type HttpAgentConfig, type RunAgentInput, runHttpRequest, transformHttpEventStream } from '@ag-ui/client'
import { createFrameParser } from '../stream/sse-parser.ts'

type Events = ReturnType<HttpAgent['run']>

export class RivuletAgent extends HttpAgent {
  #last: { threadId: string; id: string } | null = null
  readonly #send: HttpAgent['fetch']

  /** `url` is that of an agent: `https://host/ag-ui/<agent>`. */
  constructor(config: HttpAgentConfig) {
    super(config)
    this.#send = this.fetch
    this.fetch = async (url, init) => this.#watch(await this.#send(url, init))
  }

  /** Follows the run of the thread. A thread that does not exist yet is empty. */
  protected override connect({ threadId }: RunAgentInput): Events {
    if (this.abortController.signal.aborted) this.abortController = new AbortController()
    const resumed = this.#last?.threadId === threadId ? { 'last-event-id': this.#last.id } : {}
    const request = async () => {
      const { signal } = this.abortController
      const response = await this.fetch(this.#addressOf(threadId), {
        headers: { ...this.headers, accept: 'text/event-stream', ...resumed },
        signal,
      })
      return response.status === 404 ? new Response(emptyThread(threadId), eventStream) : response
    }
    return transformHttpEventStream(runHttpRequest(request), this.debugLogger)
  }

  /** Also cancels on the server, where a run goes on without its client. */
  override abortRun(): void {
    super.abortRun()
    const headers = { ...this.headers, 'content-type': 'application/json' }
    void this.fetch(`${this.#addressOf(this.threadId)}/cancel`, { method: 'POST', headers, body: '{}', keepalive: true }).catch(() => {})
  }

  override clone(): RivuletAgent {
    const { fetch: _, ...fields } = super.clone()
    return Object.assign(new RivuletAgent({ url: this.url, fetch: this.#send }), fields)
  }

  #addressOf(threadId: string): string {
    return `${this.url.replace(/\/$/, '')}/threads/${encodeURIComponent(threadId)}`
  }

  /**
   * The response, whose body notes the ids as it is read. Its `cancel` never rejects, because AG-UI's client calls it on a broken connection and leaves the
   * rejection unhandled, which ends a Node process.
   */
  #watch(response: Response): Response {
    const reader =
      response.ok && response.headers.get('content-type')?.startsWith('text/event-stream') ? response.body?.getReader() : undefined
    if (!reader) return response
    const { threadId } = this
    const decoder = new TextDecoder()
    const parser = createFrameParser(() => {})
    const read = async () => {
      const piece = await reader.read()
      const id = parser.parse(decoder.decode(piece.value, { stream: true })).findLast(frame => frame.id)?.id
      if (id !== undefined) this.#last = { threadId, id }
      return piece
    }
    const watched = { read, cancel: () => reader.cancel().catch(() => {}) }
    return Object.defineProperty(response, 'body', { value: { getReader: () => watched } })
  }
}

const eventStream = { headers: { 'content-type': 'text/event-stream' } }

function emptyThread(threadId: string): string {
  const run = { threadId, runId: 'none' }
  const events = [
    { type: 'RUN_STARTED', ...run },
    { type: 'RUN_FINISHED', ...run, outcome: { type: 'success' } },
  ]
  return events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')
}
