/** How long a worker may take to stop. */
import type { Environment } from '../context.ts'

/** After a change of the sources, old turns are not worth a wait: they continue in the new worker. */
export function reloadDrainMs({ WORKER_DRAIN_MS }: Environment): string {
  return WORKER_DRAIN_MS || '1000'
}

/** Longer than a worker lets its turns finish. A worker that stands at a breakpoint does not react to a signal, so it gets less. */
export function stopMsFor({ WORKER_DRAIN_MS }: Environment, isInspected = false): number {
  return (isInspected ? 2_000 : 20_000) + (Number(WORKER_DRAIN_MS) || 30_000)
}
