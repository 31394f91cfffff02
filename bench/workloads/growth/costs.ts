import type { Figures, StreamRun } from '../../bench.ts'

/** What an event costs, and when it arrives. The start of each of `messages` is an event, too: of a few deltas each, it is a large share. */
export function costs({ received, cpu }: StreamRun, messages: number): Figures {
  const micros = (used: number) => (used / (received.deliveries + messages)) * 1e6
  return {
    allMicros: micros(cpu.server + cpu.redis + cpu.speaker),
    serverMicros: micros(cpu.server),
    p50Ms: received.p50Ms,
    p99Ms: received.p99Ms,
    deltasPerFrame: received.deliveries / received.frames,
  }
}
