/**
 * What was said in a stream, folded by the protocol's own composer: the same updates give the same messages here, in the log and in the rows.
 *
 * Text that goes on where it stopped is handed to the composer in larger pieces, so that a token costs next to nothing.
 */
import {
  channelOf,
  createTurnComposer,
  type DeltaOf,
  delta,
  isTextDelta,
  type Message,
  type TextDelta,
  type Update,
} from '@rivulet/protocol'
import type { SpokenMessage } from './model.ts'

export type Transcript = {
  /** Throws when an update breaks the protocol's rules or says too much in all. */
  add(update: Update): void
  messages(): SpokenMessage[]
  messageAt(index: number): SpokenMessage | undefined
  /** Indexes that nobody has closed, ascending. */
  open(): number[]
  nextIndex(): number
}

const maxHeldChars = 16 * 1024

export function createTranscript(): Transcript {
  const composer = createTurnComposer({ task: '', turn: 1, attempt: 1, firstIndex: 0 })
  /** The text delta that the composer was given last, and what has followed it in the same place. */
  let latest: { index: number; delta: TextDelta } | null = null
  let held = ''

  return {
    add,
    messages: () => composed().messages().map(spoken),
    messageAt: index => {
      const message = composed().messageAt(index)
      return message && spoken(message)
    },
    open: () =>
      composed()
        .messages()
        .flatMap(({ index, status }) => (status === 'streaming' ? [index] : [])),
    nextIndex: composer.nextIndex,
  }

  function add(update: Update): void {
    const words = goesOn(update)
    if (words === null) {
      composed().compose(update)
      // An empty one is nothing, wherever it is: the composer has not seen its place.
      const isTaken = update.type === 'delta' && isTextDelta(update.delta) && update.delta.text !== ''
      latest = isTaken ? { index: update.index, delta: update.delta as TextDelta } : null
      return
    }
    held += words
    if (held.length > maxHeldChars) composed()
  }

  /** The text of a delta that extends what was extended last. The composer has seen that place: it takes any text there. */
  function goesOn(update: Update): string | null {
    if (!latest || update.type !== 'delta' || update.index !== latest.index || update.delta?.type !== latest.delta.type) return null
    const { text } = update.delta as DeltaOf<'text'>
    return typeof text === 'string' && channelOf(update.delta) === channelOf(latest.delta) ? text : null
  }

  function composed() {
    if (!latest || held === '') return composer
    const update = delta(latest.index, { ...latest.delta, text: held })
    held = ''
    composer.compose(update)
    return composer
  }
}

function spoken({ index, author, content, metadata, status, stopReason, usage, error }: Message): SpokenMessage {
  const ending = { ...(stopReason && { stopReason }), ...(usage && { usage }), ...(error && { error }) }
  return { index, author, content, metadata, status, ...ending }
}
