/**
 * A message that is written by hand. Writes after its close are rejected, and leaving its scope closes it exactly once.
 */
import {
  type Content,
  type Delta,
  done,
  type Failure,
  full,
  type Json,
  type JsonObject,
  type Message,
  type UpdateOf,
} from '@rivulet/protocol'
import type { TurnWriter } from './turn-writer.ts'

/**
 * `await using` closes it at the end of its block, complete: a disposal cannot see whether the block threw. Where half a message should be
 * told from a whole one, give `turn.message` a function instead.
 */
export type MessageHandle = AsyncDisposable & {
  /** The message's place in its turn. */
  readonly index: number
  /** Adds text, or any delta that fits the content. Waits only when much more has been said than was taken. */
  append(addition: string | Delta): Promise<void>
  /** Replaces the value of a `data` or `tool_response` message. */
  setData(value: Json): Promise<void>
  setMetadata(metadata: JsonObject): Promise<void>
  /** Replaces everything and closes the message. */
  replace(content: string | Content, metadata?: JsonObject): Promise<void>
  finish(how?: Omit<UpdateOf<'done'>, 'type' | 'index'>): Promise<void>
  /** The message as it stands. */
  current(): Message
}

export function createMessageHandle(writer: TurnWriter, index: number): MessageHandle {
  const strict = { strict: true }
  return {
    index,
    append: addition => extend(typeof addition === 'string' ? textDelta(current().content, addition) : addition),
    setData: value => extend({ type: 'data', value }),
    setMetadata: metadata => extend({ type: 'metadata', metadata }),
    replace: (content, metadata) => writer.write(full(index, content, metadata), strict),
    finish: how => writer.write(done(index, how), strict),
    current,
    [Symbol.asyncDispose]: dispose,
  }

  function extend(delta: Delta): Promise<void> {
    return writer.write({ type: 'delta', index, delta }, strict)
  }

  async function dispose(): Promise<void> {
    await closeMessage(writer, index).catch(error => {
      // A turn that is over has closed it, or its server will. What ended the block is the error to tell.
      if (!writer.isOver()) throw error
    })
  }

  function current(): Message {
    const message = writer.messageAt(index)
    if (!message) throw new Error(`Message ${index} does not exist`)
    return message
  }
}

/** Closes a message that is still open; one that is closed stays as it is. */
export async function closeMessage(writer: TurnWriter, index: number, error?: Failure): Promise<void> {
  if (writer.messageAt(index)?.status !== 'streaming') return
  await writer.write(done(index, error ? { status: 'failed', error } : {}))
}

/** The delta by which plain text extends a content. */
function textDelta(content: Content, text: string): Delta {
  switch (content.type) {
    case 'reasoning':
      return { type: 'reasoning_content', index: 0, text }
    case 'data':
      return { type: 'data_json', text }
    case 'tool_request':
    case 'tool_response':
      return { type: content.type, text }
    case 'text':
    case 'media':
      return { type: 'text', text }
    default:
      return content satisfies never
  }
}
