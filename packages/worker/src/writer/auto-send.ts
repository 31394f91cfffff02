/** Sends a whole stream of updates: opens a message for each content block, streams its deltas, closes it, and returns the finished messages. */
import { type Content, endOf, type Message, RivuletError, type StopReason, type Update, type Usage } from '@rivulet/protocol'
import { failureOf } from '../failure.ts'
import { closeMessage } from './message-handle.ts'
import { createStreamPlaces } from './stream-places.ts'
import type { TurnWriter } from './turn-writer.ts'

export type AutoSent = {
  messages: Message[]
  /** The text of all text messages, joined. */
  text: string
  toolCalls: Extract<Content, { type: 'tool_request' }>[]
  usage?: Usage
  stopReason: StopReason
}

export async function autoSend(writer: TurnWriter, updates: AsyncIterable<Update> | Iterable<Update>): Promise<AutoSent> {
  checkIterable(updates)
  const places = createStreamPlaces(writer)
  try {
    for await (const update of updates) await places.write(update)
  } catch (error) {
    await closeOpen(failureOf(error)).catch(() => {})
    throw error
  }
  await closeOpen()
  return summarize(places.indexes().flatMap(index => writer.messageAt(index) ?? []))

  async function closeOpen(error?: ReturnType<typeof failureOf>): Promise<void> {
    for (const index of places.indexes()) await closeMessage(writer, index, error)
  }
}

function checkIterable(updates: unknown): void {
  const isIterable = typeof updates === 'object' && updates !== null && (Symbol.asyncIterator in updates || Symbol.iterator in updates)
  if (isIterable) return
  const hint = updates instanceof Promise ? 'a promise: await it first' : `${updates === null ? 'null' : typeof updates}`
  throw new RivuletError('bad_call', `turn.autoSend needs an iterable of updates, and got ${hint}`)
}

function summarize(messages: Message[]): AutoSent {
  const contents = messages.map(({ content }) => content)
  const toolCalls = messages.flatMap(({ content, status }) => (content.type === 'tool_request' && status === 'complete' ? [content] : []))
  return {
    messages,
    text: contents.map(content => (content.type === 'text' ? content.text : '')).join(''),
    toolCalls,
    ...endOf(messages),
  }
}
