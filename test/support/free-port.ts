/**
 * A free port on 127.0.0.1. Below the range from which outgoing connections take theirs, so that it is still free when a process
 * that was started with it listens, and again when that process is started a second time.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'

export async function freePort(): Promise<string> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
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
