/** What a workload is given, what it gives back, and how runs are taken: in turns, so that a machine that gets busier is so for everybody. */
import type { Contestant, Role, World } from './contestant.ts'
import { cpuSeconds } from './cpu.ts'
import type { Crowd, Heard } from './crowd.ts'
import { now, type Plan } from './speech.ts'

export type Bench = {
  world: World
  crowd: Crowd
  contestants: Contestant[]
  rounds: number
  /** A part of every count, for a bench that only shows that it works. 1: all of it. */
  scale: number
  note(line: string): void
}

/** Figures by their names. */
export type Figures = Record<string, number>

/** By contestant, or whatever else the rows of a workload are. */
export type Results = Map<string, Figures>

export type Column = { key: string; title: string; digits?: number }

/** Met when the ratio, or figure, is not beyond its bound. Null: one of the two was not there. */
export type Goal = { text: string; value(results: Results): number | null } & ({ atMost: number } | { atLeast: number })

export type Workload = {
  name: string
  title: string
  columns: Column[]
  goals: Goal[]
  run(bench: Bench): Promise<Results>
}

/** In one line, without the stack that a child has sent along. */
export function reasonOf(error: unknown): string {
  const [reason = ''] = (error instanceof Error ? error.message : String(error)).split(/\n\s+at /)
  return reason.replaceAll(/\s+/g, ' ').slice(0, 500)
}

/** A, B, C, A, B, C …: the median of each figure. Who fails is left out, and it is said why. */
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

/** At least one, and as much of a count as the bench's scale says. */
export function scaled({ scale }: Pick<Bench, 'scale'>, count: number): number {
  return Math.max(1, Math.round(count * scale))
}

export type StreamRun = { heard: Heard; seconds: number; cpu: Record<Role, number> }

/** Tasks, their viewers, everything said and everything heard; the clock and the CPU run from the first word to the last. */
export async function streamOnce({ crowd }: Pick<Bench, 'crowd'>, contestant: Contestant, plan: Plan, viewersEach = 1): Promise<StreamRun> {
  const prepared = await contestant.prepare(plan)
  try {
    await crowd.open({ requests: prepared.requests, viewersEach, deltas: plan.deltas })
    const cpuBefore = cpuOf(contestant)
    const began = now()
    const [heard] = await Promise.all([crowd.hear(), prepared.speak()])
    const cpu = difference(cpuOf(contestant), cpuBefore)
    return { heard, seconds: (heard.lastAt - began) / 1e6, cpu }
  } finally {
    await crowd.close()
    await prepared.clear()
  }
}

/** What a process does for the first time takes longer than ever after. */
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
