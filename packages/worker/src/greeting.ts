/** Registers a worker with its server, which often starts beside it and does not respond at first. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Hello } from '@rivulet/contract/internal'
import { backoffMs, RivuletError } from '@rivulet/protocol'
import { fullTextOf } from './failure.ts'
import type { Logger } from './logger.ts'
import type { ServerCalls } from './server-calls.ts'

/** A worker that starts beside its server should be ready soon after it. */
const backoff = { firstMs: 50, maxMs: 500 }

type GreetingDeps = { server: Pick<ServerCalls, 'hello'>; log: Logger; stopping: AbortSignal }

/**
 * Resolves when the server knows this worker, with the queues that are not named as their agents, or when the worker stops. Rejects when its key may not
 * serve its agents, because a retry would not help.
 */
export async function greetServer(hello: Hello, { server, log, stopping }: GreetingDeps): Promise<Record<string, string>> {
  let lastReason = ''
  for (let attempt = 1; !stopping.aborted; attempt += 1) {
    try {
      return await server.hello(hello)
    } catch (error) {
      if (error instanceof RivuletError && error.code === 'forbidden') throw error
      const reason = fullTextOf(error)
      // The same reason comes many times while the server starts.
      if (reason !== lastReason) log.info({ reason }, 'the server does not respond yet; retrying')
      lastReason = reason
    }
    await sleep(backoffMs(attempt, backoff))
  }
  return {}
}
