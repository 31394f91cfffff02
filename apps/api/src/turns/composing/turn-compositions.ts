/** The turns whose events this process composes. Any of them can be left out at any time, because the next append reads it from Postgres and the log. */
import type { Append, AppendResult, LogReader, LogWriter } from '@rivulet/broker'
import { type ComposedTurn, defaultLimits, type Limits, type TurnId } from '@rivulet/protocol'
import { createBatcher } from '../../store/connection/batcher.ts'
import type { Database } from '../../store/connection/database.ts'
import { findTurn } from '../../store/reads/turns.ts'
import { stateAround } from '../../store/states/task-state.ts'
import { keptMessages } from '../../store/waits/held-waits.ts'
import { type CompositionDeps, TurnComposition } from './turn-composition.ts'

/** How long a turn is remembered after its last call. */
const keepMs = 60_000
/** Appends that go to Redis in one call. */
const maxTogether = 1_000

type Known = { composition: TurnComposition; claim: string; usedAt: number }

export type TurnCompositionsDeps = { db: Database; reader: LogReader; writer: LogWriter; limits: Limits }

export class TurnCompositions {
  readonly #db: Database
  readonly #deps: CompositionDeps
  /** By turn, the one that was used last at the end. */
  readonly #known = new Map<TurnId, Known>()

  constructor({ db, reader, writer, limits: { deltaBytes, turnBytes } }: TurnCompositionsDeps) {
    this.#db = db
    const append = createBatcher<Append, AppendResult>(maxTogether, appends => writer.append(appends))
    this.#deps = { reader, append, limits: { deltaBytes, turnBytes, jsonDepth: defaultLimits.jsonDepth } }
  }

  /** Of a turn that the caller holds under this claim, and whose epoch is at least this one. Null for a turn that no worker has. */
  async of(turnId: TurnId, claim: string, epoch: number): Promise<TurnComposition | null> {
    const known = this.#known.get(turnId)
    if (known?.claim === claim && known.composition.epoch >= epoch) return this.#keep(turnId, claim, known.composition)
    const row = await findTurn(this.#db, turnId)
    if (!row || row.epoch === null || row.firstIndex === null || row.claim !== claim || row.status !== 'running' || row.canceling)
      return null
    if (row.epoch < epoch) return null
    const [kept, { state, keptState }] = await Promise.all([keptMessages(this.#db, row), stateAround(this.#db, row)])
    const { task, number, attempt, firstIndex } = row
    return this.open(turnId, claim, row.epoch, { task, turn: number, attempt, firstIndex, kept, state: keptState ?? state ?? undefined })
  }

  open(turnId: TurnId, claim: string, epoch: number, turn: ComposedTurn): TurnComposition {
    // Another call may have opened it meanwhile.
    const known = this.#known.get(turnId)
    if (known?.claim === claim && known.composition.epoch >= epoch) return this.#keep(turnId, claim, known.composition)
    return this.#keep(turnId, claim, new TurnComposition(turn, epoch, this.#deps))
  }

  forget(turnId: TurnId): void {
    this.#known.delete(turnId)
  }

  #keep(turnId: TurnId, claim: string, composition: TurnComposition): TurnComposition {
    const now = performance.now()
    this.#known.delete(turnId)
    this.#known.set(turnId, { composition, claim, usedAt: now })
    for (const [id, { usedAt }] of this.#known) {
      if (usedAt > now - keepMs) break
      this.#known.delete(id)
    }
    return composition
  }
}
