/**
 * The turns of workers that speak the public protocol. Their updates are composed to events here. A log that lost entries is reopened: the result `gap` names
 * the epoch and the number from which the worker goes on. For a turn that the worker does not hold, the result is that of a turn that does not exist.
 */

import type { WorkerAppend, WorkerAppended } from '@rivulet/contract/worker'
import type { ComposedTurn, RivuletError, TurnId } from '@rivulet/protocol'
import type { TurnComposition } from '../../../turns/composing/turn-composition.ts'
import { TurnCompositions } from '../../../turns/composing/turn-compositions.ts'
import type { Services } from '../../services.ts'
import type { Caller } from '../internal/held-turns.ts'
import type { WorkerCalls } from '../internal/internal.ts'

/** A turn as its worker holds it. */
export type HeldTurn = { turn: TurnId; claim: string; epoch: number }
type Continuation = { next: number; epoch: number }

export class ComposedTurns {
  readonly #compositions: TurnCompositions
  readonly #calls: WorkerCalls
  readonly #services: Services

  constructor(services: Services, calls: WorkerCalls) {
    const { db, reader, writer, config } = services
    this.#services = services
    this.#calls = calls
    this.#compositions = new TurnCompositions({ db, reader, writer, limits: config.limits })
  }

  open({ turn, claim, epoch }: HeldTurn, composed: ComposedTurn): void {
    this.#compositions.open(turn, claim, epoch, composed)
  }

  /** The turn is over, for this worker at least. */
  forget({ turn, claim }: Pick<HeldTurn, 'turn' | 'claim'>): void {
    this.#compositions.forget(turn, claim)
  }

  /** Null if the caller does not hold the turn. */
  async compositionOf(caller: Caller, { turn, claim, epoch }: HeldTurn): Promise<TurnComposition | null> {
    const [task = null] = await this.#calls.held.heldTasks(caller, [{ turnId: turn, claimId: claim, epoch }])
    return task === null ? null : this.#compositions.compositionOf(turn, claim, epoch)
  }

  reachedBy(caller: Caller, ids: readonly TurnId[]): Promise<ReadonlySet<string>> {
    return this.#calls.held.reachedOf(caller, ids)
  }

  /** A turn whose append failed does not fail the others: its worker sends it again. Throws if all have failed. */
  async appendAll(caller: Caller, appends: readonly WorkerAppend[]): Promise<WorkerAppended[]> {
    const settled = await Promise.allSettled(appends.map(one => this.append(caller, one)))
    const [failed, ...more] = settled.flatMap(one => (one.status === 'rejected' ? [one] : []))
    if (failed && more.length + 1 === appends.length) throw failed.reason
    return settled.map((one, i) => {
      if (one.status === 'fulfilled') return one.value
      caller.log.warn({ turnId: appends[i]?.turn, err: one.reason }, 'an append of a worker failed; it has to be sent again')
      return { result: 'unavailable', next: appends[i]?.first ?? 1 }
    })
  }

  async append(caller: Caller, { first, updates, ...held }: WorkerAppend): Promise<WorkerAppended> {
    const composition = await this.compositionOf(caller, held)
    if (!composition) return this.#fenced(first)
    const composed = composition.epoch === held.epoch ? await composition.append(first, updates) : ({ result: 'fenced' } as const)
    switch (composed.result) {
      case 'ok':
      case 'duplicate':
      case 'closed':
        return { result: composed.result, next: composed.next }
      case 'gap':
        return { result: 'gap', next: composed.next }
      case 'full':
      case 'invalid': {
        const { result, next, at, error } = composed
        return { result, next, ...(at !== undefined && { at }), ...(error && { error: { code: error.code, message: withFix(error) } }) }
      }
      case 'lost':
      case 'missing':
      case 'fenced': {
        const place = await this.continueAt(caller, held)
        return place ? { result: 'gap', ...place } : this.#fenced(first)
      }
      default:
        return composed satisfies never
    }
  }

  /** Where the worker goes on: in the log as it is, or in a new one if entries were lost. Null if the caller does not hold the turn any more. */
  async continueAt(caller: Caller, held: HeldTurn): Promise<Continuation | null> {
    const composition = await this.compositionOf(caller, held)
    const { place, number } = (await composition?.read()) ?? { place: 'fenced', number: 0 }
    if (!composition) return null
    if (place === 'current') return { next: number + 1, epoch: composition.epoch }
    if (place === 'lost') return this.reopen(caller, { ...held, epoch: composition.epoch })
    // Another process may have reopened the log for the same claim.
    const later = await this.compositionOf(caller, { ...held, epoch: composition.epoch + 1 })
    const read = await later?.read()
    return later && read?.place === 'current' ? { next: read.number + 1, epoch: later.epoch } : null
  }

  /** In a new epoch, the worker sends everything again. */
  async reopen({ principal, log }: Caller, { turn, claim, epoch }: HeldTurn): Promise<Continuation | null> {
    const reopened = await this.#calls.claims.reopen({ principal, log, body: { turnId: turn, claimId: claim, epoch } })
    this.forget({ turn, claim })
    return reopened.result === 'reopened' ? { next: 1, epoch: reopened.epoch } : null
  }

  #fenced(next: number): WorkerAppended {
    this.#services.metrics.fenced.inc({ write: 'append' })
    return { result: 'fenced', next }
  }
}

/** The message says what is wrong; most workers see it only in a log, so it also names what to send instead. */
function withFix({ code, message }: RivuletError): string {
  switch (code) {
    case 'message_closed':
      return `${message}; send a start with the next index`
    case 'message_not_started':
      return `${message}; send its start first`
    case 'delta_type_mismatch':
      return `${message}; send a delta of the type of the message`
    default:
      return message
  }
}
