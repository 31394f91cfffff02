/**
 * The transport of `useChat` for an agent of Rivulet: a chat is a task, by its name, and each answer is a turn of it.
 *
 * A stream that breaks is resumed after its last chunk. A message that is regenerated is the last turn again, or a rewind to before it; an edited message is a
 * rewind to before its turn. It checks no rights: a page can send any request, so the API, or a route of yours before it, decides what a page may do.
 */
import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai'
import { pageWakeUps, pause, retryDelayMs } from '../http/backoff.ts'
import { linkAbort } from '../http/link-abort.ts'
import { errorOf, mayPass, rejectionOf, unreachable } from '../http/rejection.ts'
import { readFrames } from '../stream/sse-frames.ts'
import { answersOf, inputOf, placeOf, type TurnPlace } from './chat-message.ts'

export type RivuletChatTransportOptions = {
  /** Of a route of yours that checks the user and passes on these requests alone, or of an API without keys: `https://shop.example/rivulet`. */
  url: string
  agent: string
  /** For each request, such as the key or the token. */
  headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>)
  /** The params of the agent. */
  params?: object
  fetch?: typeof fetch
  /** Time without a byte, after which a connection counts as broken; the API sends heartbeats. Default: 45,000. */
  silenceMs?: number
}

type SendOptions = Parameters<ChatTransport<UIMessage>['sendMessages']>[0]
type ReconnectOptions = Parameters<ChatTransport<UIMessage>['reconnectToStream']>[0]
type Call = { method?: string; body?: object; key?: string; lastId?: string | null; signal?: AbortSignal | undefined }

export class RivuletChatTransport implements ChatTransport<UIMessage> {
  /** A stream without a cursor begins with the message so far. */
  readonly resumeStreamIsReplay = true
  readonly #options: RivuletChatTransportOptions
  readonly #silenceMs: number
  /** The tasks of the chats that this transport has seen. */
  readonly #tasks = new Map<string, string>()

  constructor(options: RivuletChatTransportOptions) {
    this.#options = options
    this.#silenceMs = options.silenceMs ?? 45_000
  }

  async sendMessages({ trigger, chatId, messageId, messages, abortSignal }: SendOptions): Promise<ReadableStream<UIMessageChunk>> {
    const last = messages.at(-1)
    if (!last) throw new Error('A chat needs a message')
    const answers = answersOf(last)
    const before = messages.flatMap(message => placeOf(message) ?? []).at(-1)
    if (before) this.#tasks.set(chatId, before.task)
    if (trigger === 'regenerate-message') return this.#regenerate(chatId, messageId, last, before, abortSignal)
    if (answers.length > 0) return this.#answer(chatId, answers, abortSignal)
    // Only a message that is edited has an id of its own here.
    if (messageId !== undefined) return this.#rewind(chatId, before?.turn ?? 0, last, abortSignal)
    const { agent, params } = this.#options
    const body = { agent, name: chatId, input: inputOf(last), ...(params && { params }) }
    return this.#stream(chatId, '/v1/tasks?format=ai-sdk', { method: 'POST', body, signal: abortSignal })
  }

  async reconnectToStream({ chatId, abortSignal }: ReconnectOptions): Promise<ReadableStream<UIMessageChunk> | null> {
    const task = await this.#taskOf(chatId)
    if (task === null) return null
    return this.#stream(chatId, `/v1/tasks/${task}/events?format=ai-sdk`, { signal: abortSignal })
  }

  /** Cancels what runs. `stop` of `useChat` only stops reading. */
  async cancel(chatId: string): Promise<void> {
    const task = await this.#taskOf(chatId)
    if (task !== null) await this.#send(`/v1/tasks/${task}/cancel`, { method: 'POST', body: {} })
  }

  async #regenerate(
    chatId: string,
    messageId: string | undefined,
    last: UIMessage,
    before: TurnPlace | undefined,
    signal: AbortSignal | undefined,
  ): Promise<ReadableStream<UIMessageChunk>> {
    const task = await this.#requireTask(chatId)
    const { turns } = await this.#read<{ turns: { number: number }[] }>(`/v1/tasks/${task}`)
    const latest = turns.at(-1)?.number ?? 0
    const [, turn = `${latest}`] = /:(\d+)$/.exec(messageId ?? '') ?? []
    if (Number(turn) < latest) return this.#rewind(chatId, before?.turn ?? 0, last, signal)
    const response = await this.#send(`/v1/tasks/${task}/retry`, { method: 'POST', body: {}, signal })
    return this.#follow(chatId, task, response, signal)
  }

  async #rewind(chatId: string, after: number, message: UIMessage, signal: AbortSignal | undefined) {
    const task = await this.#requireTask(chatId)
    const { params } = this.#options
    const body = { input: inputOf(message), after, ...(params && { params }) }
    return this.#follow(chatId, task, await this.#send(`/v1/tasks/${task}/turns`, { method: 'POST', body, signal }), signal)
  }

  /** The last answer gets the rest of the message. */
  async #answer(chatId: string, answers: ReturnType<typeof answersOf>, signal: AbortSignal | undefined) {
    const task = await this.#requireTask(chatId)
    const [final, ...others] = answers.toReversed()
    const pathOf = (wait: string) => `/v1/tasks/${task}/waits/${encodeURIComponent(wait)}/answer`
    for (const { wait, ...body } of others) await this.#send(pathOf(wait), { method: 'POST', body, signal })
    const { wait = '', ...body } = final ?? {}
    return this.#stream(chatId, `${pathOf(wait)}?format=ai-sdk`, { method: 'POST', body, signal })
  }

  async #follow(chatId: string, task: string, accepted: Response, signal: AbortSignal | undefined) {
    const { turn } = (await accepted.json()) as { turn: { number: number } }
    return this.#stream(chatId, `/v1/tasks/${task}/events?format=ai-sdk&turn=${turn.number}`, { signal })
  }

  async #requireTask(chatId: string): Promise<string> {
    const task = await this.#taskOf(chatId)
    if (task === null) throw new Error('The chat has no task yet')
    return task
  }

  async #taskOf(chatId: string): Promise<string | null> {
    const known = this.#tasks.get(chatId)
    if (known !== undefined) return known
    const query = new URLSearchParams({ agent: this.#options.agent, name: chatId })
    const { data } = await this.#read<{ data: { id: string }[] }>(`/v1/tasks?${query}`)
    const [found] = data
    if (found) this.#tasks.set(chatId, found.id)
    return found?.id ?? null
  }

  async #read<T>(path: string): Promise<T> {
    return (await this.#send(path)).json() as Promise<T>
  }

  /** A request that changes something has a key, so that it is done once, however often it is sent. */
  async #send(path: string, { method = 'GET', body, key = crypto.randomUUID(), lastId, signal }: Call = {}): Promise<Response> {
    const headers = {
      ...(body && { 'content-type': 'application/json', 'idempotency-key': key }),
      ...(lastId != null && { 'last-event-id': lastId }),
    }
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.#try(path, init, signal)
      } catch (error) {
        if (signal?.aborted) throw signal.reason
        if (failures === maxFailures || !mayPass(error)) throw error
        await pause(rejectionOf(error)?.retryAfterMs ?? retryDelayMs(failures, Math.random), { signal, wakeUps: pageWakeUps })
      }
    }
  }

  /** The head of the response has to arrive as soon as any other byte. The signal also ends the body, so its listener stays. */
  async #try(path: string, init: { method: string; headers: Record<string, string> }, signal: AbortSignal | undefined): Promise<Response> {
    const { url, headers, fetch: given = fetch } = this.#options
    const own = typeof headers === 'function' ? await headers() : headers
    const { controller } = linkAbort(signal)
    const timer = setTimeout(() => controller.abort(), this.#silenceMs)
    try {
      const request = { ...init, headers: { ...own, ...init.headers }, signal: controller.signal }
      const response = await given(`${url.replace(/\/$/, '')}${path}`, request).catch(error => {
        throw unreachable(`No response from ${url}`, error)
      })
      if (!response.ok) throw await errorOf(response)
      return response
    } finally {
      clearTimeout(timer)
    }
  }

  /** The chunks of a turn, up to `[DONE]`. */
  async #stream(chatId: string, path: string, call: Call): Promise<ReadableStream<UIMessageChunk>> {
    const { controller: reading } = linkAbort(call.signal)
    const request = { ...call, key: crypto.randomUUID(), signal: reading.signal }
    const first = await this.#send(path, request)
    const chunks = this.#chunks(chatId, first, () => this.#send(path, request), reading.signal)
    return new ReadableStream({
      async pull(controller) {
        try {
          const { done, value } = await chunks.next()
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          controller.error(error)
        }
      },
      // The abort comes first, because `return` waits for a chunk that is being read.
      async cancel() {
        reading.abort()
        await chunks.return()
      },
    })
  }

  /** A clean end without `[DONE]` is a connection that broke. `again` repeats the request, while it is not known which turn it is about. */
  async *#chunks(
    chatId: string,
    first: Response,
    again: () => Promise<Response>,
    signal: AbortSignal,
  ): AsyncGenerator<UIMessageChunk, void, void> {
    let response = first
    let place: TurnPlace | null = null
    let lastId: string | null = null
    /** The chunks of an event whose last one, which has the id, is not there yet: a stream that is resumed sends all of them again. */
    let unfinished: UIMessageChunk[] = []
    for (let failures = 0; ; failures += 1) {
      if (!response.body) return
      try {
        for await (const { id, data } of readFrames(response.body, { ...frameOptions, silenceMs: this.#silenceMs, signal })) {
          if (data === '[DONE]') {
            yield* unfinished
            return
          }
          const chunk = JSON.parse(data) as UIMessageChunk
          if ('messageMetadata' in chunk) place = placeOf({ metadata: chunk.messageMetadata }) ?? place
          if (place) this.#tasks.set(chatId, place.task)
          unfinished.push(chunk)
          if (id === undefined) continue
          yield* unfinished
          unfinished = []
          lastId = id
          failures = 0
        }
      } catch (error) {
        if (failures === maxFailures || !mayPass(error)) throw error
      }
      if (failures === maxFailures) throw new Error('The stream ended before its answer')
      unfinished = []
      await pause(retryDelayMs(failures, Math.random), { signal, wakeUps: pageWakeUps })
      if (place === null || lastId === null) response = await again()
      else response = await this.#send(`/v1/tasks/${place.task}/events?format=ai-sdk&turn=${place.turn}`, { lastId, signal })
    }
  }
}

/** How often in a row a request, or a stream without a new chunk, may fail. */
const maxFailures = 8

const frameOptions = { wakeUps: pageWakeUps, onRetry: () => {} }
