/**
 * A process of its own for a turn that lost two workers: if the turn kills its process again, no other turn dies with it.
 *
 * The worker starts its own program again and passes the turn and the claim id. The child claims the turn under that id, which moves the lease to
 * the child, runs this one turn, and exits. At most `maxTurns` children run at a time, because each is a whole program.
 */

import type { ChildProcess } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import type { TurnId } from '@rivulet/protocol'

export type Isolation = {
  /** The turn this process is there for; undefined in an ordinary worker. */
  turnId: TurnId | undefined
  /** Starts this program again, as the process of one turn. */
  start: (turnId: TurnId) => ChildProcess
  /** Children at a time; other turns wait for one to exit. Default 2. */
  maxTurns?: number | undefined
}

export type IsolatedTurn = { turnId: TurnId; claimId: string; agent: string }

export type RunIsolated = (
  isolated: IsolatedTurn,
  /** `signal` fires when the turn is lost before its child has started. */
  options: { signal: AbortSignal; onStart: () => void },
) => Promise<'ran' | 'not started'>

function encodeIsolatedTurn({ turnId, claimId, agent }: IsolatedTurn): string {
  return [turnId, claimId, agent].join('/')
}

export function decodeIsolatedTurn(text: string): IsolatedTurn {
  const [turnId, claimId, agent, ...rest] = text.split('/')
  if (!turnId || !claimId || !agent || rest.length > 0) throw new Error(`Not an isolated turn: ${text}`)
  return { turnId, claimId, agent }
}

/** When `stopping` fires, running children get SIGTERM, and no child is started. */
export function createIsolatedRuns({ start, maxTurns = 2 }: Isolation, stopping: AbortSignal): RunIsolated {
  const slots = new EventEmitter().setMaxListeners(0)
  let free = maxTurns

  return async (isolated, { signal, onStart }) => {
    if (!(await takeSlot(AbortSignal.any([stopping, signal])))) return 'not started'
    try {
      onStart()
      await untilExit(start(encodeIsolatedTurn(isolated)), stopping)
      return 'ran'
    } finally {
      free += 1
      slots.emit('free')
    }
  }

  async function takeSlot(signal: AbortSignal): Promise<boolean> {
    while (free === 0 && !signal.aborted) await once(slots, 'free', { signal }).catch(() => {})
    if (signal.aborted) return false
    free -= 1
    return true
  }
}

/** Resolves when the child has ended, however that was; `signal` ends it. */
async function untilExit(child: ChildProcess, signal: AbortSignal): Promise<void> {
  const stop = () => child.kill('SIGTERM')
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
