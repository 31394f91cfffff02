/** How fast the words came, by the log. */
import { isLogged } from '@rivulet/client'
import type { Entry } from './event-log.ts'

export type Pace = {
  bucketMs: number
  /** Deltas in each bucket, from the first event on. */
  deltas: number[]
  /** For each attempt: from its start to its first delta. */
  firstDeltas: { turnNumber: number; attempt: number; ms: number }[]
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
