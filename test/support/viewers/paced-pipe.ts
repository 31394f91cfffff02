/** One direction of a connection, with a configured speed and fragmentation. Nothing is lost, and nothing changes places. */
import { setTimeout as sleep } from 'node:timers/promises'

export type Pace = {
  /** How much later everything arrives. */
  latencyMs: number
  /** The longest piece; 0 leaves pieces as they are. */
  sliceBytes: number
  /** 0 is as fast as it goes. */
  bytesPerSecond: number
}

export const unpaced: Pace = { latencyMs: 0, sliceBytes: 0, bytesPerSecond: 0 }

export function createPacedPipe(write: (chunk: Buffer) => void, paceNow: () => Pace): (chunk: Buffer) => void {
  let waiting: { chunk: Buffer; at: number }[] = []
  let isRunning = false
  return chunk => {
    if (!isRunning && paceNow() === unpaced) {
      write(chunk)
      return
    }
    waiting.push({ chunk, at: performance.now() + paceNow().latencyMs })
    if (!isRunning) void run()
  }

  async function run(): Promise<void> {
    isRunning = true
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const early = next.at - performance.now()
      if (early > 0) await sleep(early)
      await send(next.chunk)
    }
    waiting = []
    isRunning = false
  }

  async function send(chunk: Buffer): Promise<void> {
    const { sliceBytes, bytesPerSecond } = paceNow()
    const step = sliceBytes || chunk.length
    for (let from = 0; from < chunk.length; from += step) {
      const piece = chunk.subarray(from, from + step)
      write(piece)
      if (bytesPerSecond > 0) await sleep((piece.length / bytesPerSecond) * 1_000)
      // Each piece by itself, or the kernel would join them again.
      else if (sliceBytes > 0) await new Promise(resolve => setImmediate(resolve))
    }
  }
}
