/** A turn that is being run: what heartbeats renew, and how to end it from outside. */
import type { TurnId } from '@rivulet/protocol'
import type { Place } from '../lease-thread/messages.ts'
import type { Lease } from '../lease-thread.ts'

export type RunningTurn = {
  turnId: TurnId
  claimId: string
  epoch(): number
  /** False while it moves from one epoch to the next: a reply about the old epoch means nothing then. */
  isSettled(): boolean
  lose(): void
  release(): void
  /** A wait of it may have been closed. */
  wake(): void
  /** Redis may have lost its log. */
  checkLog(): void
  /** The server may have parked it already: the next job of the turn is the one that resumes it. */
  isParking(): boolean
}

/** Registers a turn for heartbeats. */
export type HoldTurn = (turn: RunningTurn, place: Place) => Lease
