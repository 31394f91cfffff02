/**
 * A process of its own for a turn whose worker died: if the turn kills its process again, it takes no other turn with it.
 *
 * The worker starts its own program once more and tells it which turn it is there for, and under which claim: the server gives the same claim
 * to whoever names it. The child runs that one turn and ends.
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

export type Isolation = {
  /** The turn this process is there for; undefined in an ordinary worker. */
  turn: string | undefined
  /** Starts this program again, as the process of one turn. */
  start: (turn: string) => ChildProcess
}

export type IsolatedTurn = { turn: string; claimId: string; agent: string }

function encodeIsolatedTurn({ turn, claimId, agent }: IsolatedTurn): string {
  return [turn, claimId, agent].join('/')
}

export function decodeIsolatedTurn(text: string): IsolatedTurn {
  const [turn, claimId, agent, ...rest] = text.split('/')
  if (!turn || !claimId || !agent || rest.length > 0) throw new Error(`Not an isolated turn: ${text}`)
  return { turn, claimId, agent }
}

/** Resolves when the child has ended, however that was; `signal` ends it. */
export async function runIsolated(isolation: Isolation, isolated: IsolatedTurn, signal: AbortSignal): Promise<void> {
  const child = isolation.start(encodeIsolatedTurn(isolated))
  const stop = () => child.kill('SIGTERM')
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
