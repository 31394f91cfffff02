/**
 * Whether one cursor stands for one content, whichever process sent it: no cursor is given to two different events, and what a snapshot shows is what
 * every other viewer has folded at that cursor. Pure functions over the journals of one task; each fault is a sentence.
 */
import { isDeepStrictEqual } from 'node:util'
import { type Cursor, emptyState, type Message, messagesOf, RivuletError, type TaskState } from '@rivulet/protocol'
import { foldFrame, isLogged, type Journal } from '../viewers/viewer.ts'
import type { Frame } from '../viewers/viewer-connection.ts'

export function twoContentsIn(journals: readonly Journal[]): string[] {
  // A viewer that brought a cursor along does not know what came before it.
  const whole = journals.filter(({ connections }) => connections[0]?.after === null).map(framesOf)
  const snapshots = new Set(whole.flat().flatMap(({ id, data }) => (data.type === 'snapshot' ? [id] : [])))
  const [events, contents] = [new Map<Cursor, Frame['data']>(), new Map<Cursor, TaskState>()]
  const faults: string[] = []
  for (const frames of whole) {
    let state = emptyState
    for (const frame of frames) {
      const next = folded(state, frame)
      // A viewer that lost something is the judge's to find.
      if (!next) break
      state = next
      if (isLogged(frame)) note(events, frame.id, frame.data, isDeepStrictEqual, faults)
      if (snapshots.has(state.cursor) && state.cursor === frame.id) note(contents, frame.id, state, isSameContent, faults)
    }
  }
  return [...new Set(faults)]
}

function note<T>(known: Map<Cursor, T>, cursor: Cursor, value: T, isSame: (a: T, b: T) => boolean, faults: string[]): void {
  const before = known.get(cursor)
  if (before === undefined) known.set(cursor, value)
  else if (!isSame(before, value)) faults.push(`${cursor} stands for ${brief(before)} and for ${brief(value)}`)
}

function folded(state: TaskState, frame: Frame): TaskState | null {
  try {
    return foldFrame(state, frame)
  } catch (error) {
    if (error instanceof RivuletError) return null
    throw error
  }
}

/**
 * As far as both hold them: a snapshot may leave out the oldest turns and messages. A viewer that watched a turn has its large values, and a snapshot behind
 * the end of the turn has files in their place.
 */
function isSameContent(a: TaskState, b: TaskState): boolean {
  const firstTurn = Math.max(a.turns[0]?.number ?? 0, b.turns[0]?.number ?? 0)
  const firstIndex = Math.max(a.messagesFrom, b.messagesFrom)
  const turns = (state: TaskState) => state.turns.filter(({ number }) => number >= firstTurn).map(({ number, status }) => [number, status])
  const messages = (state: TaskState) => messagesOf(state).filter(({ index }) => index >= firstIndex)
  const [some, others] = [messages(a), messages(b)]
  const areSame = some.length === others.length && some.every((message, i) => isSameMessage(message, others[i]))
  return areSame && isDeepStrictEqual(turns(a), turns(b))
}

function isSameMessage(a: Message, b: Message | undefined): boolean {
  if (b === undefined || hasFile(a) === hasFile(b)) return isDeepStrictEqual(a, b)
  const about = ({ content: { type }, ...message }: Message) => ({ ...message, type })
  return isDeepStrictEqual(about(a), about(b))
}

function hasFile({ content }: Message): boolean {
  return 'file' in content && content.file !== undefined
}

function brief(value: unknown): string {
  const isState = typeof value === 'object' && value !== null && 'messages' in value && 'turns' in value
  const shown = isState
    ? { turns: (value as TaskState).turns.map(({ number, status }) => [number, status]), messages: messagesOf(value as TaskState) }
    : value
  return (JSON.stringify(shown) ?? 'nothing').slice(0, 600)
}

function framesOf({ connections }: Journal): Frame[] {
  return connections.flatMap(({ frames }) => frames)
}
