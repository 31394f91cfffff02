/** The changes that one event makes for the reader of a turn. A message that opens or is replaced may be closed at once: its status says so. */
import type { Delta, EventOf, FoldedTurn, Json, Message, State, Wait } from '@rivulet/protocol'

export type Change =
  /** The turn is queued, or an attempt of it begins. */
  | { type: 'started'; turn: FoldedTurn }
  /** Messages that the reader has do not count any more. */
  | { type: 'reset'; dropped: readonly Message[] }
  | { type: 'opened'; message: Message }
  | { type: 'grew'; message: Message; before: Message; delta: Delta }
  /** The agent replaced the message, or it changed while the reader missed events. The new content may begin with the old one. */
  | { type: 'replaced'; message: Message; before: Message }
  | { type: 'closed'; message: Message; before: Message }
  /** `more`: another wait was opened together with this one, and follows. */
  | { type: 'asked'; wait: Wait; more: boolean }
  | { type: 'answered'; wait: Wait }
  | { type: 'custom'; name: string; data: Json }
  /** A child of the turn begins or ends. A turn that waits for its child has `asked`, too, and a snapshot has those alone. */
  | { type: 'child'; event: EventOf<'child.started' | 'child.finished'> }
  /** The state of the task, which no turn owns. */
  | { type: 'state'; state: State }
  | { type: 'ended'; turn: FoldedTurn }

/** Between two states of a turn. `from`: messages before this index are not in the later one, which says nothing about them. */
export function messageChanges(before: readonly Message[], now: readonly Message[], from: number): Change[] {
  const current = new Map(now.map(message => [message.index, message]))
  const dropped = new Set(before.filter(message => message.index >= from && !isSame(message, current.get(message.index))))
  const kept = new Map(before.filter(message => !dropped.has(message)).map(message => [message.index, message]))
  const reset: Change[] = dropped.size > 0 ? [{ type: 'reset', dropped: [...dropped] }] : []
  return [...reset, ...now.flatMap(message => changesOf(kept.get(message.index), message))]
}

export function waitChanges(before: readonly Wait[] = [], now: readonly Wait[] = [], more = false): Change[] {
  const known = new Map(before.map(({ id, status }) => [id, status]))
  const opened = now.filter(({ id }) => !known.has(id))
  const answered = now.filter(({ id, status }) => status !== 'open' && (known.get(id) ?? 'open') === 'open')
  return [
    ...opened.map((wait): Change => ({ type: 'asked', wait, more: more || wait !== opened.at(-1) })),
    ...answered.map((wait): Change => ({ type: 'answered', wait })),
  ]
}

function isSame(a: Message, b: Message | undefined): boolean {
  return b?.turn === a.turn && b.attempt === a.attempt
}

function changesOf(before: Message | undefined, message: Message): Change[] {
  if (!before) return [{ type: 'opened', message }]
  // A closed message stays as it is, but a large value of it is a file in a later snapshot.
  const isUnchanged = before === message || before.status !== 'streaming' || JSON.stringify(before) === JSON.stringify(message)
  return isUnchanged ? [] : [{ type: 'replaced', message, before }]
}
