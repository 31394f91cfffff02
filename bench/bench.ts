/** The types of workloads and results, and how runs are made: in several rounds contestants alternate, so that a busier machine slows all of them. */
import type { Contestant, Prepared, Role, World } from './contestant.ts'
import type { Crowd, Received } from './crowd.ts'
import { cpuSeconds } from './measure/cpu.ts'
import { now, type Plan } from './measure/speech.ts'

export type Bench = {
  world: World
  crowd: Crowd
  contestants: Contestant[]
  rounds: number
  /** The factor of every count: 1 for a full bench, less for one that only shows that the bench works. */
  scale: number
  note(line: string): void
}

/** Figures by their names. */
export type Figures = Record<string, number>

/** By the rows of a workload's table, which are mostly contestants. */
export type Results = Map<string, Figures>

export type Column = { key: string; title: string; digits?: number }

/** Met when the value is within its bound. Null when one of the compared rows was not measured. */
export type Goal = { text: string; value(results: Results): number | null } & ({ atMost: number } | { atLeast: number })

export type Workload = {
  name: string
  title: string
  columns: Column[]
  goals: Goal[]
  run(bench: Bench): Promise<Results>
}

/** The message in one line, without the stack that a child process adds. */
export function reasonOf(error: unknown): string {
  const [reason = ''] = (error instanceof Error ? error.message : String(error)).split(/\n\s+at /)
  return reason.replaceAll(/\s+/g, ' ').slice(0, 500)
}

/** Runs A, B, C, A, B, C … and returns the median of each figure. A contestant that fails is left out, with the reason. */
export async function interleave<Each extends { name: string }>(
  { rounds, note }: Pick<Bench, 'rounds' | 'note'>,
  each: readonly Each[],
  run: (one: Each) => Promise<Figures>,
): Promise<Results> {
  const taken = new Map<string, Figures[]>(each.map(({ name }) => [name, []]))
  const failed = new Set<string>()
  for (let round = 0; round < rounds; round += 1) {
    for (const one of each.filter(({ name }) => !failed.has(name))) {
      try {
        taken.get(one.name)?.push(await run(one))
      } catch (error) {
        failed.add(one.name)
        note(`${one.name} is left out: ${reasonOf(error)}`)
      }
    }
  }
  return new Map(Array.from(taken).flatMap(([name, figures]) => (failed.has(name) ? [] : [[name, medians(figures)]])))
}

export function ratio(results: Results, key: string, one: string, other: string): number | null {
  const [a, b] = [results.get(one)?.[key], results.get(other)?.[key]]
  return a === undefined || b === undefined ? null : a / b
}

/** A count multiplied by the bench's scale; at least 1. */
export function scaled({ scale }: Pick<Bench, 'scale'>, count: number): number {
  return Math.max(1, Math.round(count * scale))
}

export type StreamRun = { received: Received; seconds: number; cpu: Record<Role, number> }

/** One run: creates tasks and viewers, and sends and receives every delta. Time and CPU are measured from the first delta to the last. */
export async function streamOnce({ crowd }: Pick<Bench, 'crowd'>, contestant: Contestant, plan: Plan, viewersEach = 1): Promise<StreamRun> {
  const prepared = await contestant.prepare(plan)
  try {
    await crowd.open({ requests: prepared.requests, viewersEach, deltas: plan.deltas })
    return await receiveAll(crowd, contestant, prepared)
  } finally {
    await crowd.close()
    await prepared.clear()
  }
}

/** The part of a run that is measured: tasks and viewers exist, and nothing was sent yet. */
export async function receiveAll(crowd: Crowd, contestant: Contestant, prepared: Pick<Prepared, 'speak'>): Promise<StreamRun> {
  const cpuBefore = cpuOf(contestant)
  const began = now()
  const [received] = await Promise.all([crowd.receive(), prepared.speak()])
  const cpu = difference(cpuOf(contestant), cpuBefore)
  return { received, seconds: (received.lastAt - began) / 1e6, cpu }
}

/** Runs once without measuring, because a process is slower the first time. */
export async function warmUp(bench: Bench, contestant: Contestant): Promise<void> {
  const deltas = scaled(bench, 100)
  await streamOnce(bench, contestant, { tasks: scaled(bench, 100), deltas, perSecond: 100 })
  await streamOnce(bench, contestant, { tasks: scaled(bench, 100), deltas, perSecond: null })
}

export function cpuOf({ pids }: Pick<Contestant, 'pids'>): Record<Role, number> {
  const seconds = (role: Role) => cpuSeconds(pids[role]?.() ?? [])
  return { server: seconds('server'), speaker: seconds('speaker'), redis: seconds('redis'), postgres: seconds('postgres') }
}

export function difference(after: Record<Role, number>, before: Record<Role, number>): Record<Role, number> {
  const of = (role: Role) => after[role] - before[role]
  return { server: of('server'), speaker: of('speaker'), redis: of('redis'), postgres: of('postgres') }
}

/** Since `before`, for each of `count`, in ms. */
export function cpuOfEach(contestant: Pick<Contestant, 'pids'>, before: Record<Role, number>, count: number): Figures {
  const spent = difference(cpuOf(contestant), before)
  const millis = (role: Role) => (spent[role] * 1_000) / count
  return {
    ...{ serverMillis: millis('server'), speakerMillis: millis('speaker') },
    ...{ redisMillis: millis('redis'), postgresMillis: millis('postgres') },
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const [low = Number.NaN, high = Number.NaN] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]]
  return (low + high) / 2
}

export function medians(all: readonly Figures[]): Figures {
  const keys = Object.keys(all[0] ?? {})
  return Object.fromEntries(keys.map(key => [key, median(all.map(figures => figures[key] ?? Number.NaN))]))
}
