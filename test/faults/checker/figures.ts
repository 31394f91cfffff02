/** What a run of the bench adds up to, for people. */
import type { SnapshotReason } from '@rivulet/protocol'
import type { History } from './history.ts'

export type Figures = {
  tasks: number
  turns: number
  attempts: number
  deltas: number
  faults: number
  viewers: number
  reconnects: number
  fencedWrites: number
  waits: number
  snapshots: Record<SnapshotReason, number>
  violations: number
}

export function figuresOf(history: History, struck: readonly string[], violations: readonly string[]): Figures {
  const frames = history.viewers.flatMap(({ connections }) => connections.flatMap(connection => connection.frames))
  const sent = (reason: SnapshotReason) => frames.filter(({ data }) => data.type === 'snapshot' && data.reason === reason).length
  return {
    tasks: history.stored.length,
    turns: history.promised.length,
    attempts: history.runs.length,
    deltas: deltasOf(history),
    faults: struck.length,
    viewers: history.viewers.length,
    reconnects: history.viewers.reduce((sum, { connections }) => sum + connections.length - 1, 0),
    fencedWrites: history.appends.filter(({ result }) => result === 'fenced').length,
    waits: history.stored.flatMap(({ detail }) => detail.turns.flatMap(({ waits = [] }) => waits)).length,
    snapshots: { join: sent('join'), gap: sent('gap'), slow: sent('slow') },
    violations: violations.length,
  }
}

/** In the logs, whichever version wrote them. After a loss the history has no logs, so then those that workers of this version appended. */
function deltasOf({ logs, appends, hasLost }: History): number {
  if (!hasLost) return [...logs.values()].flat().filter(({ event }) => event.type === 'message.delta').length
  const accepted = appends.filter(({ result }) => result === 'ok').flatMap(({ events }) => events)
  return accepted.filter(json => json.includes('"message.delta"')).length
}

export function addFigures(sum: Figures | null, next: Figures): Figures {
  if (!sum) return next
  const add = <T extends Record<string, number>>(a: T, b: T) =>
    Object.fromEntries(Object.entries(a).map(([key, value]) => [key, value + (b[key] ?? 0)])) as T
  const { snapshots, ...counts } = sum
  const { snapshots: more, ...others } = next
  return { ...add(counts, others), snapshots: add(snapshots, more) }
}

export function describeFigures({ snapshots: { join, gap, slow }, ...counts }: Figures): string {
  const { tasks, turns, attempts, deltas, faults, viewers, reconnects, fencedWrites, waits, violations } = counts
  return [
    `${tasks} tasks, ${turns} turns, ${attempts} attempts, ${waits} waits, ${deltas} deltas, ${faults} faults`,
    `${viewers} viewers, ${reconnects} reconnects, ${fencedWrites} fenced writes, ${join + gap + slow} snapshots (${join} join, ${gap} gap, ${slow} slow)`,
    `${violations} violations`,
  ].join('; ')
}
