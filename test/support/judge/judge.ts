/**
 * Whether the stream of a viewer is honest: nothing twice, nothing missing without a snapshot, nothing wrong. Pure functions over journals;
 * each fault is a sentence.
 *
 * Entries of an epoch are numbered 1, 2, 3 …, so a hole shows without the log. Where the log is at hand, ends of epochs are checked as well.
 */
import { isDeepStrictEqual } from 'node:util'
import {
  type Cursor,
  compareCursors,
  emptyState,
  epochOf,
  hasEnded,
  type Message,
  messagesOf,
  RivuletError,
  seqOf,
  type TaskState,
} from '@rivulet/protocol'
import { foldFrame, isLogged, type Journal } from '../viewers/viewer.ts'
import type { Connection, Frame } from '../viewers/viewer-connection.ts'

export type Evidence = {
  /** What Postgres has, once the task has ended: the viewer's last text has to be that. */
  rows?: Message[]
  /** Every cursor of the log, where nothing was trimmed or lost. */
  log?: readonly Cursor[]
  /** Whether Redis lost entries or the log has foreign entries, so that events may be skipped. */
  isDisturbed?: boolean
}

export function faultsIn(journal: Journal, { rows, log, isDisturbed = false }: Evidence = {}): string[] {
  const { state, faults } = foldJournal(journal)
  return [
    ...journal.connections.flatMap(faultsOfConnection),
    ...faultsOfOrder(journal),
    ...holesIn(journal, log),
    ...repeatedEnds(journal),
    ...faults,
    ...(isDisturbed || state.discarded === 0 ? [] : [`${state.discarded} events had no place in the fold`]),
    ...(rows ? faultsOfEnd(state, rows) : []),
  ].map(fault => `viewer of ${journal.task}: ${fault}`)
}

export function foldJournal({ connections }: Journal): { state: TaskState; faults: string[] } {
  const faults: string[] = []
  let state = emptyState
  for (const frame of connections.flatMap(({ frames }) => frames)) {
    const before = state
    try {
      state = foldFrame(state, frame)
    } catch (error) {
      if (!(error instanceof RivuletError)) throw error
      faults.push(`${frame.data.type} ${frame.id}: ${error.message}`)
    }
    faults.push(...faultsOfTurns(before, state, frame))
  }
  return { state, faults }
}

/** A turn ends once it is known, and an end is for good. A viewer that brought a cursor along does not know the turns before it. */
function faultsOfTurns(before: TaskState, after: TaskState, { id, data }: Frame): string[] {
  const isKnown = (number: number) => before.turns.length === 0 || before.turns.some(turn => turn.number === number)
  const reopened = before.turns.filter(
    ({ number, status }) => hasEnded(status) && after.turns.some(turn => turn.number === number && !hasEnded(turn.status)),
  )
  return [
    ...(data.type === 'turn.finished' && !isKnown(data.turn) ? [`${id}: turn ${data.turn} finished, and was never queued`] : []),
    ...reopened.map(({ number }) => `${data.type} ${id}: turn ${number} had ended, and goes on`),
  ]
}

/** One response by itself: its head, its first and its last frame. */
function faultsOfConnection(connection: Connection, place: number): string[] {
  const { after, status, frames, retries, oddities, url } = connection
  const faults = oddities.map(oddity => `something that is no frame: ${oddity.slice(0, 300)}`)
  if (status !== 200) return faults
  const types = frames.map(({ data }) => data.type)
  const count = (type: string) => types.filter(known => known === type).length
  if (frames.length > 0 && !retries.some(ms => ms >= 1_000 && ms <= 5_000)) faults.push(`no retry delay between 1 and 5 s: ${retries}`)
  if (count('caught_up') > 1) faults.push(`it caught up ${count('caught_up')} times`)
  if (count('end') > 1 || (count('end') === 1 && types.at(-1) !== 'end')) faults.push('something follows the end')
  if (count('end') === 1 && count('caught_up') === 0) faults.push('it ended without having caught up')
  const begins = frames[0]?.data
  const isNew = after === null && !/[?&](after|from)=/.test(url)
  if (begins && isNew && !(begins.type === 'snapshot' && begins.reason === 'join')) faults.push(`it joined with ${begins.type}`)
  for (const [i, { data }] of frames.entries()) {
    if (data.type === 'snapshot' && data.reason === 'join' && (i > 0 || !isNew)) faults.push('it received a join in the middle')
  }
  return faults.map(fault => `connection ${place + 1}: ${fault}`)
}

/** What stands in the log comes in the order of the log, once. Whatever is shown, no cursor is before the last one. */
function faultsOfOrder(journal: Journal): string[] {
  const faults: string[] = []
  let logged: Cursor | null = null
  let shown: Cursor | null = null
  for (const frame of framesOf(journal)) {
    const { id, data } = frame
    if (isLogged(frame)) {
      if (logged && compareCursors(id, logged) <= 0) faults.push(`${data.type} ${id} after ${logged}`)
      logged = id
    } else if (shown && compareCursors(id, shown) < 0) {
      faults.push(`${data.type} goes back to ${id} from ${shown}`)
    }
    shown = id
  }
  return faults
}

/** Between two events of the log there is nothing, or a snapshot. A connection goes on where the one before it stood. */
function holesIn(journal: Journal, log: readonly Cursor[] | undefined): string[] {
  const faults: string[] = []
  let before: Cursor | null = null
  for (const connection of journal.connections) {
    before = connection.after ?? askedFor(connection) ?? before
    for (const frame of connection.frames) {
      if (isLogged(frame) && before && !follows(before, frame.id, log)) faults.push(`nothing between ${before} and ${frame.id}`)
      before = frame.id
    }
  }
  return faults
}

function askedFor({ url, after }: Connection): Cursor | null {
  return after === null && /[?&]from=start/.test(url) ? '0-0' : null
}

function follows(before: Cursor, cursor: Cursor, log: readonly Cursor[] | undefined): boolean {
  if (log) {
    const place = log.indexOf(cursor)
    // A viewer that joined before the log of a new task was opened has the rows of epoch 1, which that log tells again.
    return place === 0 ? before === '0-0' || before === '1-0' : log[place - 1] === before
  }
  return epochOf(before) === epochOf(cursor) ? seqOf(cursor) === seqOf(before) + 1 : seqOf(cursor) === 1
}

function repeatedEnds(journal: Journal): string[] {
  const finished = framesOf(journal).flatMap(({ data }) => (data.type === 'turn.finished' ? [data.turn] : []))
  return finished
    .filter((turnNumber, place) => finished.indexOf(turnNumber) !== place)
    .map(turnNumber => `turn ${turnNumber} finished twice`)
}

function faultsOfEnd(state: TaskState, rows: Message[]): string[] {
  const said = messagesOf(state)
  const stored = rows.filter(({ index }) => index >= state.messagesFrom)
  const differing = stored.findIndex((row, place) => !isDeepStrictEqual(row, said[place]))
  return [
    ...state.turns.filter(({ status }) => !hasEnded(status)).map(({ number, status }) => `turn ${number} is ${status} at the end`),
    ...(state.turns.length === 0 ? ['it knows of no turn at the end'] : []),
    ...(said.length === stored.length ? [] : [`it holds ${said.length} messages, stored are ${stored.length}`]),
    ...(differing === -1 ? [] : [`it holds ${brief(said[differing])}\nbut stored is ${brief(stored[differing])}`]),
  ]
}

function brief(message: Message | undefined): string {
  return (JSON.stringify(message) ?? 'nothing').slice(0, 1_000)
}

function framesOf({ connections }: Journal): Frame[] {
  return connections.flatMap(({ frames }) => frames)
}
