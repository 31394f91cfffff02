/** Runs that wait to speak, and afterwards to end: between the graph and the server's process, which are loaded apart. */
import { createGate, type Gate } from '../gate.ts'
import { eventOf, type Plan, speak } from '../speech.ts'

export type Run = { waiting: number; saidAll: number; speak: Gate; end: Gate }

const shared = globalThis as typeof globalThis & { benchRuns?: Map<string, Run> }
shared.benchRuns ??= new Map()
const runs = shared.benchRuns

export function runOf(name: string): Run {
  const run = runs.get(name) ?? { waiting: 0, saidAll: 0, speak: createGate(), end: createGate() }
  runs.set(name, run)
  return run
}

export async function begin(given: { plan: Plan; task: number; run: string; say: (event: unknown) => void }): Promise<void> {
  const run = runOf(given.run)
  run.waiting += 1
  await run.speak.opened
  for await (const { number, text } of speak(given.plan, given.task)) given.say(JSON.parse(eventOf(given.run, number, text)))
  run.saidAll += 1
  await run.end.opened
}
