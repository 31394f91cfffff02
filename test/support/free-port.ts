/**
 * A free port on 127.0.0.1. Below the range from which outgoing connections take theirs, so that it is still free when a process
 * that was started with it listens, and again when that process is started a second time. Each test file that runs at the same time has ports of its
 * own, because a process may take seconds until it listens.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Of vitest, at most 4 at a time. */
const first = 20_000 + (Number(process.env.VITEST_POOL_ID ?? 0) % 4) * 3_000
const given = new Set<number>()

export async function freePort(): Promise<string> {
  for (;;) {
    const port = first + Math.floor(Math.random() * 3_000)
    if (given.has(port)) continue
    given.add(port)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    if (!isFree) continue
    await new Promise(resolve => server.close(resolve))
    return String(port)
  }
}
