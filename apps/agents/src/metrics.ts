/** The metrics of a worker process: its running turns, its attempts and their first deltas, and its calls to models and tools. */
import type { WorkerObserver } from '@rivulet/worker'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** In seconds. */
const buckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1_800, 3_600]
/** Models and tools beyond this many share the label `other`. Agents are those that this program was given. */
const maxNames = 100

export type WorkerMetrics = { registry: Registry; observer: WorkerObserver }

export function createWorkerMetrics(concurrency: number): WorkerMetrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const histogram = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Histogram({ name: `rivulet_${name}`, help, labelNames, buckets, registers })

  const firstDelta = histogram(
    'first_delta_seconds',
    'Time to the first delta of an attempt, since the turn was queued or since this claim',
    ['agent', 'since'],
  )
  const attempts = histogram('attempt_seconds', 'Duration of attempts in this process, by how they ended', ['agent', 'end'])
  const calls = histogram('agent_call_seconds', 'Duration of calls of agents, by model or tool', ['agent', 'call', 'name'])
  const callErrors = new Counter({
    name: 'rivulet_agent_call_errors_total',
    help: 'Calls of models and tools that failed',
    labelNames: ['agent', 'call', 'name'],
    registers,
  })
  const running = new Gauge({ name: 'rivulet_worker_turns_running', help: 'Turns running in this process', registers })
  new Gauge({ name: 'rivulet_worker_concurrency', help: 'Turns that this process can run at a time', registers }).set(concurrency)
  const known = new Set<string>()

  return {
    registry,
    observer: {
      turnStarted: () => running.inc(),
      firstDelta(agent, { queuedMs, startedMs }) {
        firstDelta.observe({ agent, since: 'started' }, startedMs / 1_000)
        if (queuedMs !== null) firstDelta.observe({ agent, since: 'queued' }, queuedMs / 1_000)
      },
      callEnded(agent, { call, name, ms, isError }) {
        const labels = { agent, call, name: bounded(name) }
        calls.observe(labels, ms / 1_000)
        if (isError) callErrors.inc(labels)
      },
      turnEnded(agent, end, ms) {
        running.dec()
        attempts.observe({ agent, end }, ms / 1_000)
      },
    },
  }

  function bounded(name: string): string {
    if (known.size < maxNames) known.add(name)
    return known.has(name) ? name : 'other'
  }
}
