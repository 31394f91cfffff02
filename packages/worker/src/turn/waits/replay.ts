/**
 * What a turn emits again after it parked. The handler runs from the top, and its first messages are the ones that the park has stored: they are
 * compared with those, and not written a second time. Every message after them is new.
 *
 * Messages are compared without their order, because steps side by side repeat theirs one step after the other. A message that was not emitted before
 * the park fails the turn: what a handler emits outside a step has to be the same each time.
 */
import { isDeepStrictEqual } from 'node:util'
import { type ComposedTurn, type Content, createTurnComposer, type Message, RivuletError, type Update } from '@rivulet/protocol'
import type { TurnWriter } from '../../writer/turn-writer.ts'

type Replay = {
  /** The turn's writer, for everything that the handler emits. */
  writer: TurnWriter
  /** Throws unless everything that was kept has been emitted again. */
  checkWhole(): void
}

/** @param isPast whether code still runs that ran before the park: what it says beside messages was said then */
export function createReplay(writer: TurnWriter, { kept = [], ...turn }: ComposedTurn, isPast: () => boolean): Replay {
  if (kept.length === 0) return { writer, checkWhole: () => {} }
  const again = createTurnComposer(turn)
  const missing = new Set(kept)
  const matched = new Set<number>()
  return { writer: { ...writer, say, write, join, end, messageAt, nextIndex }, checkWhole }

  function say(update: Update, options?: { strict?: boolean }): void {
    if (update?.type === 'custom' && (isBehind() || isPast())) return
    if (isReplayed(update)) {
      writer.checkOpen()
      again.compose(update, options)
      compareClosed()
    } else writer.say(update, options)
  }

  function write(update: Update, options?: { strict?: boolean }): Promise<void> {
    if (!isReplayed(update) && update?.type !== 'custom') return writer.write(update, options)
    try {
      say(update, options)
      return Promise.resolve()
    } catch (error) {
      return Promise.reject(error)
    }
  }

  function join(turnNumber: number, inputs: readonly Content[]): Message[] {
    if (!isBehind()) return writer.join(turnNumber, inputs)
    writer.checkOpen()
    const from = again.nextIndex()
    again.join(turnNumber, inputs)
    compareClosed()
    return inputs.flatMap((_, i) => again.messageAt(from + i) ?? [])
  }

  /** Of a message that was kept, or before one. What is no update is for the writer to refuse. */
  function isReplayed(update: Update): boolean {
    return typeof update?.index === 'number' && update.type !== 'custom' && (isBehind() || update.index < kept.length)
  }

  function isBehind(): boolean {
    return again.nextIndex() < kept.length
  }

  function end(...how: Parameters<TurnWriter['end']>): void {
    if (how[0] === 'complete') {
      again.closeAll('complete')
      checkWhole()
    }
    writer.end(...how)
  }

  function messageAt(index: number): Message | undefined {
    return index < kept.length ? again.messageAt(index) : writer.messageAt(index)
  }

  function nextIndex(): number {
    return isBehind() ? again.nextIndex() : writer.nextIndex()
  }

  function compareClosed(): void {
    for (const message of again.messages()) {
      const index = message.index - turn.firstIndex
      if (message.status === 'streaming' || matched.has(index)) continue
      const before = Array.from(missing).find(one => isSame(one, message))
      if (!before) throw differs(index)
      missing.delete(before)
      matched.add(index)
    }
  }

  function checkWhole(): void {
    compareClosed()
    const [lost] = missing
    if (lost) throw differs(lost.index - turn.firstIndex)
  }
}

function isSame(one: Message, other: Message): boolean {
  return isDeepStrictEqual([one.author, one.content, one.metadata], [other.author, other.content, other.metadata])
}

function differs(index: number): RivuletError {
  return new RivuletError(
    'bad_call',
    `Message ${index} of the turn is not what it was before the turn parked: emit it in a step, or the same way each time`,
  )
}
