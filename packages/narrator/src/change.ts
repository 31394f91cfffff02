/** What changes for the reader of a turn by one event. A message that opens or is replaced may be closed at once: its status says so. */
import { type Content, type Delta, DeltaAccumulator, type FoldedTurn, type Json, type Message, type Wait } from '@rivulet/protocol'

export type Change =
  /** The turn is queued, or an attempt of it begins. */
  | { type: 'started'; turn: FoldedTurn }
  /** Messages that the reader has do not count any more. */
  | { type: 'reset'; dropped: readonly Message[] }
  | { type: 'opened'; message: Message }
  | { type: 'grew'; message: Message; before: Message; delta: Delta }
  /** The content does not continue the one before. */
  | { type: 'replaced'; message: Message; before: Message }
  | { type: 'closed'; message: Message; before: Message }
  /** `more`: another wait was opened together with this one, and follows. */
  | { type: 'asked'; wait: Wait; more: boolean }
  | { type: 'answered'; wait: Wait }
  | { type: 'custom'; name: string; data: Json }
  | { type: 'ended'; turn: FoldedTurn }

/** Between two states of a turn. `from`: messages before this index are not in the later one, which says nothing about them. */
export function messageChanges(before: readonly Message[], now: readonly Message[], from: number): Change[] {
  const current = new Map(now.map(message => [message.index, message]))
  const dropped = before.filter(message => message.index >= from && !isSame(message, current.get(message.index)))
  const kept = new Map(before.filter(message => !dropped.includes(message)).map(message => [message.index, message]))
  const reset: Change[] = dropped.length > 0 ? [{ type: 'reset', dropped }] : []
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
  if (before === message || before.status !== 'streaming') return []
  const deltas = deltasBetween(before, message)
  if (!deltas) return [{ type: 'replaced', message, before }]
  let grown = DeltaAccumulator.of(before)
  const growth = deltas.map((delta): Change => {
    const last = grown.message
    grown = grown.append(delta)
    return { type: 'grew', message: grown.message, before: last, delta }
  })
  return message.status === 'streaming' ? growth : [...growth, { type: 'closed', message, before: grown.message }]
}

/** Null where the later content is not known to continue the earlier one. */
function deltasBetween({ content: old, metadata: about }: Message, { content, metadata }: Message): Delta[] | null {
  const growth = growthOf(old, content)
  return growth && (isEqual(about, metadata) ? growth : [...growth, { type: 'metadata', metadata }])
}

function growthOf(old: Content, now: Content): Delta[] | null {
  if (isEqual(old, now)) return []
  if (old.type === 'text' && now.type === 'text' && old.format === now.format)
    return restOf(old.text, now.text, text => ({ type: 'text', text }))
  if (old.type === 'tool_request' && now.type === 'tool_request' && old.callId === now.callId && old.name === now.name)
    return now.raw === undefined ? null : restOf(old.raw ?? '', now.raw, text => ({ type: 'tool_request', text }))
  if (old.type !== 'reasoning' || now.type !== 'reasoning') return null
  const summary = now.summary.map((text, index) =>
    restOf(old.summary[index] ?? '', text, rest => ({ type: 'reasoning_summary', index, text: rest })),
  )
  const content = now.content.map((text, index) =>
    restOf(old.content[index] ?? '', text, rest => ({ type: 'reasoning_content', index, text: rest })),
  )
  const parts = [...summary, ...content].filter(part => part !== null)
  const isGrowth =
    parts.length === summary.length + content.length && summary.length >= old.summary.length && content.length >= old.content.length
  return isGrowth ? parts.flat() : null
}

function restOf(old: string, now: string, toDelta: (rest: string) => Delta): Delta[] | null {
  if (!now.startsWith(old)) return null
  return now === old ? [] : [toDelta(now.slice(old.length))]
}

function isEqual(a: object, b: object): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
