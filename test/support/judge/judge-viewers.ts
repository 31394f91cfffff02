/** Judges viewers of tasks that have come to rest, against what the platform has stored and, where nothing was trimmed, logged. */

import type { Platform } from '../platform/platform.ts'
import type { Viewer } from '../viewers/viewer.ts'
import { type Evidence, faultsIn } from './judge.ts'
import { twoContentsIn } from './one-content.ts'

/** The first faults of viewers, after waiting for the end of each. `log` false: its log was trimmed, has expired or is not all there. */
export async function faultsOfViewers(
  { client, redis, keys }: Pick<Platform, 'client' | 'redis' | 'keys'>,
  viewers: readonly Viewer[],
  { log = true, ...evidence }: Omit<Evidence, 'rows' | 'log'> & { log?: boolean } = {},
): Promise<string[]> {
  const journals = await Promise.all(viewers.map(({ ended }) => ended))
  const faults: string[] = []
  for (const task of new Set(journals.map(journal => journal.task))) {
    const rows = await client.messages(task)
    const ids = log ? (await redis.xrange(keys.stream(task), '-', '+')).map(([id]) => id as `${number}-${number}`) : undefined
    const own = journals.filter(journal => journal.task === task)
    faults.push(...own.flatMap(journal => faultsIn(journal, { rows, ...(ids && { log: ids }), ...evidence })), ...twoContentsIn(own))
  }
  // What is wrong once is often wrong for everyone.
  return faults.slice(0, 5)
}
