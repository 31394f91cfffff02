/** What the processes of a platform hold, each after it has collected its garbage; and the share of one of many. */
import type { Redis } from 'ioredis'
import { collectingOptions, heldMemory } from '../../test/support/process/collect-garbage.ts'
import type { Figures } from '../bench.ts'
import type { Platform } from '../platform.ts'
import { residentBytes } from './cpu.ts'

/** The environment of a platform whose memory is measured: without keys, because its metrics are read. */
export const measurable = { ...collectingOptions, RIVULET_KEY: '', RIVULET_WORKER_KEY: '' }

/** In bytes. Heap and buffers are not known of every process. */
export type Held = { held: number; resident: number }

export async function inApi({ api }: Platform): Promise<Held> {
  const held = await heldMemory(api)
  return { held, resident: residentBytes(api.pid) }
}

export async function inWorker({ worker }: Platform): Promise<Held> {
  process.kill(worker.pid, 'SIGUSR2')
  // Twice, because a signal is handled after the messages of its round of the event loop.
  await worker.ask('ready')
  await worker.ask('ready')
  return { held: Number.NaN, resident: residentBytes(worker.pid) }
}

export async function inRedis(redis: Redis): Promise<Held> {
  const info = await redis.info('memory')
  const bytes = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1])
  return { held: bytes('used_memory'), resident: bytes('used_memory_rss') }
}

/** What each of `count` has added. */
export function heldByEach(after: Held, before: Held, count: number): Figures {
  const kilobytes = (of: keyof Held) => (after[of] - before[of]) / count / 1_024
  return { heldKilobytes: kilobytes('held'), residentKilobytes: kilobytes('resident') }
}
