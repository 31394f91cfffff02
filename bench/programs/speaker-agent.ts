/**
 * The agent of the bench, in a real worker process. Its turns wait for the command to speak, and then for the command to end, so that a run
 * measures streaming without the start and the end of turns. Turns without a run do not wait.
 */
import { defineAgent, delta, type Turn } from '@rivulet/worker'
import { handleRequests } from '../child.ts'
import { createGate, type Gate } from '../measure/gate.ts'
import { type Plan, speak } from '../measure/speech.ts'
import { createProbe } from './probe.ts'

/** `task` is the task's number in the plan. */
export type SpeakerParams = { run?: string; task: number; plan: Plan }

type Run = { waiting: number; sentAll: number; speak: Gate; end: Gate }

const runs = new Map<string, Run>()

export default defineAgent('speaker', async function* (turn: Turn) {
  const { run: name, task, plan } = turn.params as SpeakerParams
  const run = name === undefined ? null : runOf(name)
  if (run) {
    run.waiting += 1
    await run.speak.opened
  }
  for await (const { text } of speak(plan, task)) yield delta(0, text)
  if (!run) return
  run.sentAll += 1
  await run.end.opened
})

handleRequests({
  ...createProbe(),
  waiting: (name: string) => runOf(name).waiting,
  speak: (name: string) => runOf(name).speak.open(),
  sentAll: (name: string) => runOf(name).sentAll,
  end: (name: string) => runOf(name).end.open(),
})

function runOf(name: string): Run {
  const run = runs.get(name) ?? { waiting: 0, sentAll: 0, speak: createGate(), end: createGate() }
  runs.set(name, run)
  return run
}
