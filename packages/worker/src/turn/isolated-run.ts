/** Holds a claimed turn until its own process has claimed it. If that process is not started, because this worker stops, the turn is released. */
import type { IsolatedTurn, RunIsolated } from '../isolation.ts'
import type { ServerCalls } from '../server-calls.ts'
import type { HoldTurn } from './running-turn.ts'

export async function runApart(
  run: RunIsolated,
  isolated: IsolatedTurn,
  epoch: number,
  { hold, server, leaving }: { hold: HoldTurn; server: Pick<ServerCalls, 'release'>; leaving: AbortSignal },
): Promise<void> {
  const lost = new AbortController()
  const { turnId, claimId } = isolated
  const lease = hold(
    {
      ...{ turnId, claimId, epoch: () => epoch, isSettled: () => true, isParking: () => false },
      ...{ lose, release: () => {}, wake: () => {}, checkLog: () => {} },
    },
    'waiting',
  )
  try {
    const how = await run(isolated, { signal: lost.signal, onStart: lease.leave })
    if (how === 'not started' && !lost.signal.aborted) await server.release({ turnId, epoch, claimId }, leaving)
  } finally {
    lease.drop()
  }

  function lose(): void {
    lost.abort()
    lease.drop()
  }
}
