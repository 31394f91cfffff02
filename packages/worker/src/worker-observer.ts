/** The callbacks for metrics of a worker: a few per turn, never one per delta. */
export type WorkerObserver = {
  turnStarted?(agent: string): void
  /** The first words of an attempt. */
  firstDelta?(agent: string, since: { queuedMs: number | null; startedMs: number }): void
  /** A model or a tool has answered, or has failed to. */
  callEnded?(agent: string, call: EndedCall): void
  turnEnded?(agent: string, how: TurnEnd, ms: number): void
}

export type EndedCall = { call: 'model' | 'tool'; name: string; ms: number; isError: boolean }

/** `completed` and `failed` are the handler's doing: the server may give a failed attempt another try. */
export type TurnEnd = 'completed' | 'failed' | 'parked' | 'lost' | 'released'
