/**
 * Sends a whole stream of updates: opens a message for each content block, streams its deltas, closes it, and returns the finished messages.
 * The stream numbers its messages from 0, whatever the turn has said before.
 */
import { type Content, type Message, RivuletError, type StopReason, sumUsage, type Update, type Usage } from '@rivulet/protocol'
import { failureOf } from '../failure.ts'
import { closeMessage } from './message-handle.ts'
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
  const indexes: number[] = []
  try {
    for await (const update of updates) await send(update)
  } catch (error) {
    await closeOpen(failureOf(error)).catch(() => {})
    throw error
  }
  await closeOpen()
  return summarize(indexes.flatMap(index => writer.messageAt(index) ?? []))

  function send(update: Update): Promise<void> {
    // What is no update is for the writer to refuse.
    if (update?.index === undefined || !Number.isInteger(update.index) || update.index < 0) return writer.write(update)
    if (update.type === 'done' && indexes[update.index] === undefined) return Promise.resolve()
    const index = placeOf(update.index)
    const written = writer.write({ ...update, index })
    // A delta without text opens no message, so the index stays free.
    if (update.index === indexes.length && writer.nextIndex() > index) indexes.push(index)
    return written
  }

  /** Where the stream's message stands in the turn; one that is new comes next. */
  function placeOf(index: number): number {
    if (index > indexes.length) throw new RivuletError('index_out_of_order', `Message ${index} cannot open before ${indexes.length}`)
    return indexes[index] ?? writer.nextIndex()
  }

  async function closeOpen(error?: ReturnType<typeof failureOf>): Promise<void> {
    for (const index of indexes) await closeMessage(writer, index, error)
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

/** How messages ended that were said one after the other, whichever way they were sent. */
export function endOf(messages: readonly Message[]): { stopReason: StopReason; usage?: Usage } {
  const responded = new Set(messages.flatMap(({ content }) => (content.type === 'tool_response' ? [content.callId] : [])))
  const isAsking = messages.some(
    ({ content, status }) => content.type === 'tool_request' && status === 'complete' && !responded.has(content.callId),
  )
  const usage = sumUsage(messages.map(message => message.usage))
  const stopReason = messages.findLast(message => message.stopReason)?.stopReason ?? (isAsking ? 'tool_use' : 'stop')
  return { stopReason, ...(usage && { usage }) }
}
