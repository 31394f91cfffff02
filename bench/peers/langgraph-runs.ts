/** Runs that wait for the commands to speak and to end. Shared through globalThis, because the graph and the server are loaded separately. */
import { createGate, type Gate } from '../measure/gate.ts'
import { eventOf, type Plan, speak } from '../measure/speech.ts'

export type Run = { waiting: number; sentAll: number; speak: Gate; end: Gate }

const shared = globalThis as typeof globalThis & { benchRuns?: Map<string, Run> }
shared.benchRuns ??= new Map()
const runs = shared.benchRuns

export function runOf(name: string): Run {
  const run = runs.get(name) ?? { waiting: 0, sentAll: 0, speak: createGate(), end: createGate() }
  runs.set(name, run)
  return run
}

export async function begin(given: { plan: Plan; task: number; run: string; send: (event: unknown) => void }): Promise<void> {
  const run = runOf(given.run)
  run.waiting += 1
  await run.speak.opened
  for await (const { number, text } of speak(given.plan, given.task)) given.send(JSON.parse(eventOf(given.run, number, text)))
  run.sentAll += 1
  await run.end.opened
}
