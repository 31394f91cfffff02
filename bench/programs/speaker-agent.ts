/**
 * The agent of the bench, in a real worker process. Its turns wait to be told to speak, and afterwards to be told to end: so a run measures
 * what is said, and not how turns begin and end. Turns without a run wait for nothing.
 */
import { defineAgent, delta, type Turn } from '@rivulet/worker'
import { answerQuestions } from '../child.ts'
import { createGate, type Gate } from '../gate.ts'
import { type Plan, speak } from '../speech.ts'
import { createProbe } from './probe.ts'

/** `task` is its number among those of the plan. */
export type SpeakerParams = { run?: string; task: number; plan: Plan }

type Run = { waiting: number; saidAll: number; speak: Gate; end: Gate }

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
  run.saidAll += 1
  await run.end.opened
})

answerQuestions({
  ...createProbe(),
  waiting: (name: string) => runOf(name).waiting,
  speak: (name: string) => runOf(name).speak.open(),
  saidAll: (name: string) => runOf(name).saidAll,
  end: (name: string) => runOf(name).end.open(),
})

function runOf(name: string): Run {
  const run = runs.get(name) ?? { waiting: 0, saidAll: 0, speak: createGate(), end: createGate() }
  runs.set(name, run)
  return run
}
