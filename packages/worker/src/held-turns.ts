/** The turns that this process runs, from their claim to their end. The lease thread renews their leases. */
import type { TurnId } from '@rivulet/protocol'
import type { LeaseThread } from './lease-thread.ts'
import type { HoldTurn, RunningTurn } from './turn/running-turn.ts'

export type HeldTurns = {
  hold: HoldTurn
  /** More than one when a turn was lost and came back before its handler had ended. */
  runsOf(turnId: TurnId): RunningTurn[]
  releaseAll(): void
  checkLogs(): void
}

export function createHeldTurns(leases: Pick<LeaseThread, 'hold'>): HeldTurns {
  const running = new Set<RunningTurn>()
  return {
    hold,
    runsOf: turnId => Array.from(running).filter(held => held.turnId === turnId),
    releaseAll: () => {
      for (const turn of running) turn.release()
    },
    checkLogs: () => {
      for (const turn of running) turn.checkLog()
    },
  }

  function hold(turn: RunningTurn, place: Parameters<HoldTurn>[1]): ReturnType<HoldTurn> {
    running.add(turn)
    const onLost = (epoch: number) => {
      // A turn that moved to a new epoch meanwhile was asked about under the old one.
      if (turn.isSettled() && turn.epoch() === epoch) turn.lose()
    }
    const holding = { turnId: turn.turnId, epoch: turn.epoch(), claimId: turn.claimId }
    const lease = leases.hold(holding, place, onLost, turn.wake)
    return { ...lease, drop }

    function drop(): void {
      running.delete(turn)
      lease.drop()
    }
  }
}
