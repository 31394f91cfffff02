/** Waiting for a condition, never for a time: asks until the answer is there, and says what it waited for when it never comes. */
import { setTimeout as sleep } from 'node:timers/promises'

export type Patience = {
  /** How long the condition may take on a machine that is busy with other tests, and at times ten times slower than another. Default 300,000. */
  timeoutMs?: number
  /** Default: a tenth of what it has waited, within 10 and 100, because each question takes the time of the processes it waits for. */
  intervalMs?: number
}

/** The first truthy answer: a count of 0 is asked for again. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  { timeoutMs = 300_000, intervalMs }: Patience = {},
): Promise<T> {
  const start = performance.now()
  for (;;) {
    const result = await ask()
    if (result) return result
    const waitedMs = performance.now() - start
    if (waitedMs > timeoutMs) throw new Error(`Waited ${timeoutMs} ms in vain: ${what}`)
    await sleep(intervalMs ?? Math.min(Math.max(waitedMs / 10, 10), 100))
  }
}
