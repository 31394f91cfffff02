/** How a worker process gets its turns, writes their output and hears about them: with Redis, or with the API alone. */
import type { Append, JobEnd } from '@rivulet/broker'
import type { AppendResult } from '@rivulet/contract/internal'
import type { TurnId } from '@rivulet/protocol'

/** What a turn has said, and the claim that proves that it may. */
export type TurnAppend = Append & { turnId: TurnId; claimId: string }

/** How many turns of an agent run in this process, and how many may. */
export type Room = (agent: string) => { used: number; most: number }

export type Intake = {
  /** The room has changed. */
  resize(): void
  /** Takes turns from these queues from now on. An agent that was removed and registered again may have another queue. */
  follow(queues: Wanted['queues']): void
  /** Takes nothing more. Resolves when the turns that were taken have ended. */
  close(): Promise<void>
}

/** Agents, and the names of those queues that are not named as their agents. */
export type Wanted = { agents: readonly string[]; queues: Readonly<Record<string, string>> }

export type Transport = {
  /** One result for each append, in order. Appends that were sent before are not written again. */
  append(appends: readonly TurnAppend[]): Promise<AppendResult[]>
  /** Resolves when turns can run, with a warning if there is one. Rejects if they never can. */
  ready(signal: AbortSignal): Promise<string | null>
  /** Takes turns of these agents while there is room, and runs them. */
  take(wanted: Wanted, room: Room, run: (agent: string, turnId: TurnId) => Promise<JobEnd>): Intake
  close(): void
}

/** Hints: the heartbeat tells the same. */
export type TransportEvents = {
  onOver: (turnId: TurnId) => void
  onAnswered: (turnId: TurnId) => void
  /** The logs may have been lost. */
  onReconnect: () => void
}
