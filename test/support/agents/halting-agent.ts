/** An agent that halts between two halves of its output until its test lets it go on. All of its turns wait for the same gate. */
import { defineAgent, type Update } from '@rivulet/worker'
import { createGate } from '../gate.ts'
import { startOwnWorker } from '../platform/own-worker.ts'
import type { Platform } from '../platform/platform.ts'

type Halting = { agent: string; open: () => void }

/** The agent is known to the platform when this resolves, and gone when the test is over. */
export async function halting(platform: Platform, one: readonly Update[], two: readonly Update[]): Promise<Halting> {
  const { open, opened } = createGate()
  const name = `halting-${crypto.randomUUID().slice(0, 8)}`
  const agent = defineAgent(name, async function* () {
    yield* one
    await opened
    yield* two
  })
  await startOwnWorker(platform, [agent])
  return { agent: name, open }
}
