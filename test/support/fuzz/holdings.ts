/** What an idle API process holds: memory, open files and sockets. Growth with the number of requests is a leak. */
import { readdirSync } from 'node:fs'
import type { ApiProcess } from '../platform/platform.ts'
import { collectingOptions, heldMemory } from '../process/collect-garbage.ts'
import { until } from '../until.ts'

// Node reads the map of a program when its first error is described, and keeps it: tens of megabytes that would look like a leak.
const onSignal = "import { findSourceMap } from 'node:module'; process.on('SIGUSR2', () => findSourceMap(process.argv[1]))"

/** For the environment of a process that is to be looked at. */
export const measuredOptions = {
  NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(onSignal)} ${collectingOptions.NODE_OPTIONS}`,
}

export type Holdings = { bytes: number; files: number }

/** Connections to Postgres come with the first requests, and go ten seconds after the last. */
const poolSize = 30
/** Half a minute after its last viewer, a feed is dropped. */
const patience = { intervalMs: 500 }

export async function holdingsOf(api: ApiProcess, key: string): Promise<Holdings> {
  return { bytes: await heldMemory({ ...api, key }), files: openFiles(api.pid) }
}

/** Resolves when it holds no more than before, and `bytes` for what is as good as constant; fails when it never does. */
export async function untilNoMoreIsHeld(api: ApiProcess, key: string, before: Holdings, bytes: number): Promise<void> {
  let now = before
  try {
    await until(
      'nothing is held',
      async () => {
        now = await holdingsOf(api, key)
        return now.bytes <= before.bytes + bytes && now.files <= before.files + poolSize
      },
      patience,
    )
  } catch {
    throw new Error(`It holds ${JSON.stringify(now)} after what it held before: ${JSON.stringify(before)}`)
  }
}

/** Only Linux tells of another process. */
function openFiles(pid: number): number {
  return process.platform === 'linux' ? readdirSync(`/proc/${pid}/fd`).length : 0
}
