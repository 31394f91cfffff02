/** The heartbeats of a worker that a test plays: without them, a turn that the test has claimed is lost when the machine is busy. */
import { onTestFinished } from 'vitest'
import type { Platform } from './platform/platform.ts'

/** Renews the lease until the test is over. */
export function keepHold({ client }: Platform, worker: string, holding: { turnId: string; epoch: number; claimId: string }): void {
  const body = { worker, turns: [holding] }
  const renewal = setInterval(() => void client.post('/internal/heartbeat', body).catch(() => {}), 500)
  onTestFinished(() => clearInterval(renewal))
}
