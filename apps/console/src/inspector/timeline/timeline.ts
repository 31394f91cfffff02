/** The log as bars over time: turns, their attempts, messages and tools, with the stored steps, waits and children; and how fast the words came. */
import { isLogged } from '@rivulet/client'
import type { Entry } from '../event-log.ts'
import { type Bar, isFailure, kindOf, labelOf } from './bar.ts'
import { type Stored, stepBars, storedBars, waitBars } from './stored-bars.ts'

/** `stored`: how many turns are drawn by their stored times. */
export type Timeline = { from: number; to: number; bars: Bar[]; stored: number }

export type Pace = {
  bucketMs: number
  /** Deltas in each bucket, from the first event on. */
  deltas: number[]
  /** For each attempt: from its start to its first delta. */
  firstDeltas: { turnNumber: number; attempt: number; ms: number }[]
}

const mostBars = 300

export function timelineOf(entries: readonly Entry[], stored: Stored = { turns: [], messages: [] }): Timeline {
  const bars: Bar[] = []
  const open = new Map<string, Bar>()
  const inLog = new Set<number>()
  const failures = new Set<string>()
  let from = Number.POSITIVE_INFINITY
  let to = 0
  for (const { event } of entries) {
    if (!isLogged(event)) continue
    const { at, turn: turnNumber, attempt, cursor } = event
    from = Math.min(from, at)
    to = Math.max(to, at)
    inLog.add(turnNumber)
    switch (event.type) {
      case 'turn.queued':
        begin(`turn ${turnNumber}`, { kind: 'turn', label: `turn ${turnNumber}`, from: at, cursor, message: null })
        break
      case 'turn.started':
        if (!open.has(`turn ${turnNumber}`))
          begin(`turn ${turnNumber}`, { kind: 'turn', label: `turn ${turnNumber}`, from: at, cursor, message: null })
        endAll(/^(message|attempt) /, at, 'bad')
        begin(`attempt ${turnNumber}`, { kind: 'attempt', label: `attempt ${attempt}`, from: at, cursor, message: null })
        break
      case 'message.started':
      case 'message.replaced': {
        const key = `message ${event.index}`
        if (!open.has(key)) begin(key, { kind: kindOf(event.content.type), label: labelOf(event), from: at, cursor, message: event.index })
        if (isFailure(event.content)) failures.add(key)
        else failures.delete(key)
        if (event.type === 'message.replaced') end(key, at, 'good')
        break
      }
      case 'message.finished':
        end(`message ${event.index}`, at, { complete: 'good', failed: 'bad', aborted: 'stopped' }[event.status] as Bar['outcome'])
        break
      case 'turn.finished': {
        const outcome = ({ completed: 'good', failed: 'bad', canceled: 'stopped' } as const)[event.status]
        endAll(/^(message|attempt) /, at, outcome)
        end(`turn ${turnNumber}`, at, outcome)
        break
      }
    }
  }
  const old = storedBars(stored, turnNumber => inLog.has(turnNumber))
  const all = [...old, ...bars, ...stepBars(stored), ...waitBars(stored)].toSorted((one, other) => one.from - other.from).slice(-mostBars)
  from = all.reduce((least, bar) => Math.min(least, bar.from), from)
  to = all.reduce((most, bar) => Math.max(most, bar.to ?? bar.from), to)
  return { from: Number.isFinite(from) ? from : 0, to, bars: all, stored: old.filter(({ kind }) => kind === 'turn').length }

  function begin(key: string, bar: Omit<Bar, 'to' | 'outcome'>): void {
    const begun: Bar = { ...bar, to: null, outcome: 'open' }
    open.set(key, begun)
    bars.push(begun)
  }

  function end(key: string, at: number, outcome: Bar['outcome']): void {
    const bar = open.get(key)
    if (!bar) return
    bar.to = at
    bar.outcome = outcome === 'good' && failures.has(key) ? 'bad' : outcome
    open.delete(key)
  }

  function endAll(keys: RegExp, at: number, outcome: Bar['outcome']): void {
    for (const key of [...open.keys()]) if (keys.test(key)) end(key, at, outcome)
  }
}

export function paceOf(entries: readonly Entry[], buckets = 60): Pace {
  const times: number[] = []
  const firstDeltas: Pace['firstDeltas'] = []
  let started: { turnNumber: number; attempt: number; at: number } | null = null
  let first = Number.POSITIVE_INFINITY
  let last = 0
  for (const { event } of entries) {
    if (!isLogged(event)) continue
    first = Math.min(first, event.at)
    last = Math.max(last, event.at)
    if (event.type === 'turn.started') started = { turnNumber: event.turn, attempt: event.attempt, at: event.at }
    if (event.type !== 'message.delta') continue
    times.push(event.at)
    if (started) firstDeltas.push({ turnNumber: started.turnNumber, attempt: started.attempt, ms: Math.max(0, event.at - started.at) })
    started = null
  }
  const bucketMs = Math.max(100, Math.ceil((last - first + 1) / buckets / 100) * 100)
  const deltas = new Array<number>(times.length > 0 ? Math.floor((last - first) / bucketMs) + 1 : 0).fill(0)
  for (const at of times) deltas[Math.floor((at - first) / bucketMs)] = (deltas[Math.floor((at - first) / bucketMs)] ?? 0) + 1
  return { bucketMs, deltas, firstDeltas }
}
