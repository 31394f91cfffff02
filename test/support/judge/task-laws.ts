/**
 * What has to be true of every task that has come to rest, whatever happened to it on the way: one result, the same in Postgres and in the log,
 * and a log that tells it in order. Each fault is a sentence.
 */
import { isDeepStrictEqual } from 'node:util'
import {
  applyEvent,
  type Cursor,
  compareCursors,
  type Event,
  emptyState,
  type Message,
  messagesOf,
  noState,
  RivuletError,
  type TaskState,
} from '@rivulet/protocol'
import type { Platform } from '../platform/platform.ts'
import type { TaskDetail } from '../platform/platform-client.ts'
import { until } from '../until.ts'

export type LoggedEvent = { cursor: Cursor; event: Event }

/** Reads a task that has ended, once its ends stand in the log, and judges it. */
export async function faultsOf({ client, log }: Pick<Platform, 'client' | 'log'>, task: string): Promise<string[]> {
  const detail = await client.waitForEnd(task)
  const logged = await until(`every turn of ${task} is announced`, async () => {
    const entries = await log(task)
    return entries.filter(({ event }) => event.type === 'turn.finished').length >= detail.turns.length && entries
  })
  const faults = [...faultsOfRows(await client.messages(task), logged), ...faultsOfState(await client.detail(task), logged)]
  return [...faults, ...faultsOfLog(detail, logged)].map(fault => `${task}: ${fault}`)
}

/** Stored rows are the fold of the log. */
export function faultsOfRows(rows: Message[], logged: LoggedEvent[]): string[] {
  const folded = fold(logged)
  const said = messagesOf(folded)
  return [
    ...rows.filter(({ index }, place) => index !== place).map(({ index }) => `index ${index} is out of place`),
    ...rows.filter(({ status }) => status === 'streaming').map(({ index }) => `message ${index} is stored while it streams`),
    ...(isDeepStrictEqual(rows, said) ? [] : [`stored ${JSON.stringify(rows)}\nbut streamed ${JSON.stringify(said)}`]),
    ...(folded.discarded === 0 ? [] : [`${folded.discarded} entries of the log do not belong there`]),
  ]
}

/** The stored state is the fold of the log. */
function faultsOfState({ state = noState }: TaskDetail, logged: LoggedEvent[]): string[] {
  const folded = fold(logged).agentState ?? noState
  return isDeepStrictEqual(state, folded) ? [] : [`stored the state ${JSON.stringify(state)}\nbut streamed ${JSON.stringify(folded)}`]
}

/** A log that is whole tells each turn in order, from its beginning to its end. */
export function faultsOfLog({ turns }: TaskDetail, logged: LoggedEvent[]): string[] {
  const faults: string[] = []
  for (const [place, { cursor }] of logged.entries()) {
    const before = logged[place - 1]
    if (before && compareCursors(before.cursor, cursor) >= 0) faults.push(`${cursor} follows ${before.cursor}`)
  }
  for (const { number, status, attempt } of turns) {
    const own = logged.flatMap(({ event }) => (event.turn === number && !isBetweenTurns(event) ? [event] : []))
    const finished = own.filter(event => event.type === 'turn.finished')
    if (own.filter(({ type }) => type === 'turn.queued').length !== 1 || own[0]?.type !== 'turn.queued')
      faults.push(`turn ${number} is not queued once, before everything`)
    if (finished.length !== 1 || own.at(-1)?.type !== 'turn.finished') faults.push(`turn ${number} does not finish once, after everything`)
    const isDiscarded = logged.some(({ event }) => event.type === 'turn.discarded' && event.from <= number && event.turn > number)
    if ((status === 'discarded' ? !isDiscarded : finished[0]?.status !== status) || finished[0]?.attempt !== attempt)
      faults.push(`turn ${number} is ${status} after ${attempt} attempts, but was announced as ${JSON.stringify(finished[0])}`)
  }
  return [...faults, ...overlaps(logged), ...faultsOfWaits(turns, logged)]
}

/** Each wait opens once in the log, and closes once if it is closed. */
function faultsOfWaits(turns: TaskDetail['turns'], logged: LoggedEvent[]): string[] {
  const events = logged.map(({ event }) => event)
  return turns.flatMap(({ number, waits = [] }) =>
    waits.flatMap(({ id, name, status }) => {
      const opened = events.filter(event => event.type === 'turn.waiting' && event.wait.id === id).length
      const closed = events.filter(event => event.type === 'turn.resumed' && event.wait === id).length
      const isRight = opened === 1 && closed === (status === 'open' ? 0 : 1)
      return isRight ? [] : [`wait ${name} of turn ${number} is ${status}, was opened ${opened} times and closed ${closed} times`]
    }),
  )
}

/** What a turn says lies between its start and its end, and no other turn speaks there; one that never started may end at any time. */
function overlaps(logged: LoggedEvent[]): string[] {
  const started = new Set<number>()
  let running: number | null = null
  return logged.flatMap(({ cursor, event }, place) => {
    if (event.type === 'turn.queued' || isBetweenTurns(event)) return []
    // A turn joins one that runs, or one that is about to start with its input.
    const starting = logged.slice(place).find(({ event: { type } }) => type === 'turn.started')?.event.turn
    if (event.type === 'turn.joined')
      return event.into === running || (running === null && event.into === starting)
        ? []
        : [`turn ${event.turn} joins ${event.into} at ${cursor}`]
    if (event.type === 'turn.started') started.add(event.turn)
    if (event.type === 'turn.started' && (running === null || running === event.turn)) running = event.turn
    const belongs = event.turn === running || (event.type === 'turn.finished' && !started.has(event.turn))
    if (event.type === 'turn.finished' && event.turn === running) running = null
    return belongs ? [] : [`${event.type} of turn ${event.turn} at ${cursor} falls into turn ${running}`]
  })
}

/** An entry that does not follow what stands before it counts as one that does not belong there. */
export function fold(logged: LoggedEvent[]): TaskState {
  let state = emptyState
  for (const { cursor, event } of logged) {
    try {
      state = applyEvent(state, event, cursor)
    } catch (error) {
      if (!(error instanceof RivuletError)) throw error
      state = { ...state, cursor, discarded: state.discarded + 1 }
    }
  }
  return state
}

/** Told by the server about a turn that has ended, or that has not begun. */
function isBetweenTurns(event: Event): boolean {
  return event.type.startsWith('child.') || event.type === 'turn.discarded' || (event.type === 'state.changed' && event.attempt === 0)
}
