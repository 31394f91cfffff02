/**
 * The messages of a stream, folded by the protocol's composer: the same updates give the same messages here, in the log and in Postgres.
 *
 * The composer takes a text in two pieces, however many deltas it has: the first delta, whose place it checks, and all others joined, when they
 * are read or another update follows. So a delta of a run in a turn passes one composer, that of the turn's writer; here it is appended to a string.
 */
import {
  channelOf,
  createTurnComposer,
  type DeltaOf,
  delta,
  isTextDelta,
  type Message,
  type TextDelta,
  type TurnComposer,
  type Update,
} from '@rivulet/protocol'
import type { SpokenMessage } from './model.ts'

export type Transcript = {
  /** Throws when an update breaks the protocol's rules or exceeds the size limit of a turn. */
  add(update: Update): void
  messages(): SpokenMessage[]
  messageAt(index: number): SpokenMessage | undefined
  /** Indexes of the open messages, ascending. */
  open(): number[]
  nextIndex(): number
}

/** A transcript belongs to no turn: its messages leave out what they would have of one. */
const anyTurn = { task: '', turn: 1, attempt: 1, firstIndex: 0 }

/** No character of a JavaScript string has more, so shorter text fits for certain, and the composer need not count it yet. */
const maxBytesPerChar = 3

export function createTranscript(composer: TurnComposer = createTurnComposer(anyTurn)): Transcript {
  /** The latest text delta that the composer has taken. `held` is the text that extends the same place since then. */
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
    const continuation = continuationOf(update)
    if (continuation === null) {
      composed().compose(update)
      // The composer ignores an empty delta without checking its place, so an empty one cannot be `latest`.
      const isTaken = update.type === 'delta' && isTextDelta(update.delta) && update.delta.text !== ''
      latest = isTaken ? { index: update.index, delta: update.delta as TextDelta } : null
      return
    }
    held += continuation
    if (held.length * maxBytesPerChar > composer.room()) composed()
  }

  /** The text of a delta that extends the same place as `latest`, else null. The composer has accepted that place, so it accepts any text there. */
  function continuationOf(update: Update): string | null {
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

function spoken({ index, author, content, metadata, status, stopReason, usage, response, error }: Message): SpokenMessage {
  const ending = { ...(stopReason && { stopReason }), ...(usage && { usage }), ...(response && { response }), ...(error && { error }) }
  return { index, author, content, metadata, status, ...ending }
}
