/** The cost of an event, whatever the number of tasks and viewers. */
import type { Figures, StreamRun } from '../../bench.ts'

/** @param starts each viewer also gets the start of its message, which is a large share where it has few deltas */
export function costs({ received, cpu }: StreamRun, starts: number): Figures {
  const micros = (used: number) => (used / (received.deliveries + starts)) * 1e6
  return {
    allMicros: micros(cpu.server + cpu.redis + cpu.speaker),
    serverMicros: micros(cpu.server),
    p50Ms: received.p50Ms,
    p99Ms: received.p99Ms,
    deltasPerFrame: received.deliveries / received.frames,
  }
}
