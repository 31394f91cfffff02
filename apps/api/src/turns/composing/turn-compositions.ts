/**
 * The turns whose events this process composes. The ones used last stay in memory, up to a number of bytes and for a time: the next append of any other turn
 * reads it from Postgres and the log.
 */
import type { Append, Appended, LogReader, LogWriter } from '@rivulet/broker'
import { type ComposedTurn, defaultLimits, type Limits, type TurnId } from '@rivulet/protocol'
import { createBatcher } from '../../store/connection/batcher.ts'
import type { Database } from '../../store/connection/database.ts'
import { findTurn } from '../../store/reads/turns.ts'
import { stateAround } from '../../store/states/task-state.ts'
import { keptMessages } from '../../store/waits/held-waits.ts'
import { type CompositionDeps, TurnComposition } from './turn-composition.ts'

/** How long a turn is remembered after its last call. */
const keepMs = 60_000
/** The output of all remembered turns. */
const maxKnownBytes = 64 * 1024 * 1024
/** Appends that go to Redis in one call. */
const maxTogether = 1_000

/** `bytes`: as of its last call. */
type Known = { composition: TurnComposition; claim: string; bytes: number; usedAt: number }

export type TurnCompositionsDeps = {
  db: Database
  reader: LogReader
  writer: Pick<LogWriter, 'appendAt'>
  limits: Limits
  /** Default 64 MiB. */
  maxBytes?: number
}

export class TurnCompositions {
  readonly #db: Database
  readonly #deps: CompositionDeps
  readonly #maxBytes: number
  /** By turn, the one that was used last at the end. */
  readonly #known = new Map<TurnId, Known>()
  #bytes = 0
  #sweep: NodeJS.Timeout | undefined

  constructor({ db, reader, writer, limits: { deltaBytes, turnBytes }, maxBytes = maxKnownBytes }: TurnCompositionsDeps) {
    this.#db = db
    this.#maxBytes = maxBytes
    const append = createBatcher<Append, Appended>(maxTogether, appends => writer.appendAt(appends))
    this.#deps = { reader, append, limits: { deltaBytes, turnBytes, jsonDepth: defaultLimits.jsonDepth } }
  }

  /** The caller holds the turn under this claim, and the epoch of the turn is at least this one. Null for a turn that no worker has. */
  async compositionOf(turnId: TurnId, claim: string, epoch: number): Promise<TurnComposition | null> {
    const known = this.#find(turnId, claim, epoch)
    if (known) return known
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
    return this.#find(turnId, claim, epoch) ?? this.#keep(turnId, claim, new TurnComposition(turn, epoch, this.#deps))
  }

  /** Only under its claim, so that no other worker can make this process read the turn again. */
  forget(turnId: TurnId, claim: string): void {
    if (this.#known.get(turnId)?.claim === claim) this.#remove(turnId)
  }

  #find(turnId: TurnId, claim: string, epoch: number): TurnComposition | null {
    const known = this.#known.get(turnId)
    return known?.claim === claim && known.composition.epoch >= epoch ? this.#keep(turnId, claim, known.composition) : null
  }

  #keep(turnId: TurnId, claim: string, composition: TurnComposition): TurnComposition {
    this.#remove(turnId)
    const bytes = composition.bytes()
    this.#known.set(turnId, { composition, claim, bytes, usedAt: performance.now() })
    this.#bytes += bytes
    for (const id of this.#known.keys()) {
      if (this.#bytes <= this.#maxBytes || id === turnId) break
      this.#remove(id)
    }
    this.#sweep ??= setTimeout(() => this.#removeUnused(), keepMs).unref()
    return composition
  }

  #removeUnused(): void {
    for (const [id, { usedAt }] of this.#known) if (usedAt <= performance.now() - keepMs) this.#remove(id)
    this.#sweep = this.#known.size > 0 ? setTimeout(() => this.#removeUnused(), keepMs).unref() : undefined
  }

  #remove(turnId: TurnId): void {
    this.#bytes -= this.#known.get(turnId)?.bytes ?? 0
    this.#known.delete(turnId)
  }
}
