/** One response of the model within a run: made by the model and kept, or sent again from memory. */
import { done, type Message, maxModelName, type StopReason, start, type Update, type Usage } from '@rivulet/protocol'
import type { Span } from '@rivulet/runtime/trace'
import type { Model, ModelRequest } from '../model/model.ts'
import type { AgentTurn, TakeDurably } from './durable.ts'
import { type Relayed, relayModel } from './model-relay.ts'
import type { RunEmitter } from './run-emitter.ts'

type ResponseContext = {
  model: Model
  emitter: RunEmitter
  signal: AbortSignal
  ready: () => Promise<void>
  take: TakeDurably
  /** Tells the turn what a response used; absent outside a turn. */
  noteUsage?: NonNullable<AgentTurn['usage']>['note'] | undefined
  span?: Span | undefined
}

type ResponseMemory = {
  messages: Pick<Message, 'content' | 'metadata' | 'status' | 'stopReason' | 'usage' | 'response' | 'error'>[]
  stopReason: StopReason
  usage?: Usage
}

/** @param name The name of its step. A response that failed or was aborted is not kept. */
export async function respond(name: string, request: ModelRequest, context: ResponseContext): Promise<Relayed> {
  const { model, emitter, signal, ready, take, noteUsage, span } = context
  const response = noteUsage && { id: newResponseId(), model: model.name.slice(0, maxModelName) }
  const from = emitter.nextIndex()
  const relayed = await take(name, { work, toMemory, fromMemory })
  emitter.release()
  return relayed

  async function work(): Promise<Relayed> {
    const relayed = await relayModel(model, request, { signal, onUpdate, ready, span })
    emitter.closeOpen(relayed.failure ? 'failed' : signal.aborted ? 'aborted' : 'complete', relayed.failure?.failure)
    if (relayed.usage && response) noteUsage?.({ ...response, usage: relayed.usage })
    return relayed
  }

  function onUpdate(update: Update): void {
    // More follows the ends that are held, so none of them is the end of the response.
    if (update.type !== 'done' && update.type !== 'full') emitter.release()
    const placed = update.index === undefined ? update : { ...update, index: update.index + from }
    emitter.emit(response && placed.type === 'done' && placed.usage ? { ...placed, response } : placed)
  }

  function toMemory({ stopReason, usage, failure }: Relayed): ResponseMemory | null {
    if (failure || signal.aborted || emitter.fatal()) return null
    const messages = emitter
      .messages()
      .slice(from)
      .map(({ index: _, author: __, ...message }) => message)
    return { messages, stopReason, ...(usage && { usage }) }
  }

  function fromMemory({ messages, stopReason, usage }: ResponseMemory): Relayed {
    for (const { content, metadata, status, ...how } of messages) {
      const index = emitter.nextIndex()
      emitter.emit(start(index, content, metadata))
      emitter.emit(done(index, { ...how, ...(status !== 'streaming' && { status }) }))
    }
    return { stopReason, usage }
  }
}

function newResponseId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
}
