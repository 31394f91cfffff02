/**
 * Composes the events of one turn from the updates of a worker that speaks the public protocol, and appends them.
 *
 * Its numbers count updates: the log keeps the number of the last one beside the events, and takes both or neither. The composer has exactly what the log
 * has up to the cursor: an append that is refused or not written is undone, and what another API process has appended is read from the cursor on.
 */
import { type Append, type Appended, type AppendResult, type EncodedEvent, encodeEvent, type LogReader } from '@rivulet/broker'
import { type WorkerUpdate, workerUpdateSchema } from '@rivulet/contract/worker'
import {
  type ComposedTurn,
  type Cursor,
  createTurnComposer,
  type Event,
  formatCursor,
  isMessageEvent,
  type Limits,
  type Message,
  RivuletError,
  type TurnComposer,
} from '@rivulet/protocol'
import { decodeEntry, readLog } from '../../log/log-fold.ts'

export type CompositionDeps = {
  reader: LogReader
  append: (append: Append) => Promise<Appended>
  limits: Pick<Limits, 'deltaBytes' | 'turnBytes' | 'jsonDepth'>
}

/** `lost`: the log has lost entries. It continues only in a later epoch, in which the worker sends everything again. */
type Place = 'current' | 'lost' | 'fenced'

/** `next` is the number of the next update. With an error, nothing was written: it is about the update `at`. */
type Composed = { result: AppendResult | 'lost' | 'invalid'; next: number; at?: number; error?: RivuletError }

/** The server alone writes that a turn begins, waits or ends. */
export const workerEvents = new Set<Event['type']>([
  ...(['message.started', 'message.delta', 'message.replaced', 'message.finished'] as const),
  ...(['state.changed', 'turn.joined', 'custom'] as const),
])

/** Appends that another process may have made meanwhile are read from the log; a worker sends one at a time, so a second try finds nothing new. */
const tries = 3

export class TurnComposition {
  readonly epoch: number
  readonly #turn: ComposedTurn
  readonly #deps: CompositionDeps
  #composer: TurnComposer
  /** The number of the last update in the log, as far as it was read, and the cursor up to which it was read. */
  #number = 0
  #cursor: Cursor
  #queue: Promise<unknown> = Promise.resolve()

  constructor(turn: ComposedTurn, epoch: number, deps: CompositionDeps) {
    this.epoch = epoch
    this.#turn = turn
    this.#deps = deps
    this.#cursor = formatCursor(epoch, 0)
    this.#composer = this.#newComposer()
  }

  /** The updates from number `first` on. Those that the log has are not written again. */
  append(first: number, updates: readonly unknown[]): Promise<Composed> {
    return this.#inTurn(async () => {
      for (let attempt = 1; attempt <= tries; attempt += 1) {
        const composed = await this.#try(first, updates)
        if (composed) return composed
      }
      throw new RivuletError('dependency_unavailable', 'The log of this turn changed while it was appended to; retry')
    })
  }

  /** What the log has of the turn, once this process has read it. */
  read(): Promise<{ place: Place; number: number; composer: TurnComposer }> {
    return this.#inTurn(async () => {
      const place = await this.#catchUp()
      return { place, number: this.#number, composer: this.#composer }
    })
  }

  /** About how many bytes the turn has said, as of the last read or append. */
  bytes(): number {
    return this.#deps.limits.turnBytes - this.#composer.room()
  }

  firstIndex(): number {
    return this.#turn.firstIndex
  }

  kept(): readonly Message[] {
    return this.#turn.kept ?? []
  }

  /** One call at a time, because each continues where the one before it ended. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => {})
    return result
  }

  /** Null when the log has moved on: then it has to be tried again from there. */
  async #try(first: number, updates: readonly unknown[]): Promise<Composed | null> {
    if (first > this.#number + 1) {
      const place = await this.#catchUp()
      if (place !== 'current') return { result: place, next: 1 }
      if (first > this.#number + 1) return { result: 'gap', next: this.#number + 1 }
    }
    const skipped = Math.min(this.#number + 1 - first, updates.length)
    const fresh = updates.slice(skipped)
    const undo = this.#composer.mark()
    let isWritten = false
    try {
      const entries = this.#composeAll(fresh)
      if (!Array.isArray(entries)) return entries
      const written = await this.#write(entries, fresh.length)
      isWritten = written === 'ok'
      if (written === 'ok') return { result: fresh.length === 0 && skipped > 0 ? 'duplicate' : 'ok', next: this.#number + 1 }
      if (written === 'fenced' || written === 'closed' || written === 'full') return { result: written, next: this.#number + 1 }
    } finally {
      // Without a reply, the entries may be in the log. Then they are read from there.
      if (!isWritten) undo()
    }
    const place = await this.#catchUp()
    return place === 'current' ? null : { result: place, next: 1 }
  }

  #composeAll(updates: readonly unknown[]): EncodedEvent[] | Composed {
    const entries: EncodedEvent[] = []
    const next = this.#number + 1
    for (const [i, update] of updates.entries()) {
      try {
        entries.push(...this.#compose(update).map(encodeEvent))
      } catch (error) {
        if (!(error instanceof RivuletError)) throw error
        return { result: error.code === 'output_too_large' ? 'full' : 'invalid', next, at: next + i, error }
      }
    }
    return entries
  }

  async #write(entries: EncodedEvent[], count: number): Promise<AppendResult> {
    const last = this.#number + count
    const written = await this.#deps.append({ task: this.#turn.task, epoch: this.epoch, first: this.#number + 1, last, entries })
    if (written.result === 'duplicate' && count === 0) return 'ok'
    if (written.result !== 'ok') return written.result
    this.#number = last
    this.#cursor = written.cursor
    return 'ok'
  }

  #compose(given: unknown): Event[] {
    const update = parsed(given)
    switch (update.type) {
      case 'state': {
        const { version, type: _, ...change } = update
        const { version: known } = this.#composer.state()
        if (version <= known) return []
        if (version > known + 1) throw new RivuletError('bad_event', `The next version of the state is ${known + 1}`)
        return this.#composer.changeState(change)
      }
      case 'join':
        return this.#composer.join(update.turn, update.inputs)
      case 'custom':
        return this.#composer.compose(update)
      default:
        return this.#isKept(update) ? [] : this.#composer.compose(update, { strict: true })
    }
  }

  async #catchUp(): Promise<Place> {
    const { task } = this.#turn
    const log = await this.#deps.reader.state(task)
    if (!log || log.isStale || log.epoch < this.epoch || (log.epoch === this.epoch && log.number < this.#number)) return 'lost'
    if (log.epoch > this.epoch) return 'fenced'
    if (log.number === this.#number) return 'current'
    try {
      for await (const page of readLog(this.#deps.reader, task, this.#cursor, log.cursor)) {
        for (const entry of page) {
          const event = entry.cursor === this.#cursor ? null : decodeEntry(task, entry)
          if (event && this.#isComposed(event)) this.#composer.adopt(event)
        }
      }
    } catch (error) {
      this.#forget()
      throw error
    }
    this.#cursor = log.cursor
    this.#number = log.number
    return 'current'
  }

  /** Whether a composer wrote it. The server itself writes what the turn had when it parked; the composer begins with that. */
  #isComposed(event: Event): boolean {
    const { turn, attempt, firstIndex, state } = this.#turn
    const firstNew = firstIndex + this.kept().length
    if (event.type === 'turn.joined') return event.into === turn && event.index >= firstNew
    if (!workerEvents.has(event.type) || event.turn !== turn || event.attempt !== attempt) return false
    if (event.type === 'state.changed') return event.version > (state?.version ?? 0)
    return !isMessageEvent(event) || event.index >= firstNew
  }

  /** An update of a message that the turn has kept is dropped, unless it is invalid. */
  #isKept(update: Exclude<WorkerUpdate, { type: 'custom' | 'state' | 'join' }>): boolean {
    if (update.index >= this.kept().length) return false
    if (workerUpdateSchema.safeParse(update).success) return true
    throw new RivuletError('bad_event', `Invalid update of type ${update.type}`)
  }

  #forget(): void {
    this.#composer = this.#newComposer()
    this.#number = 0
    this.#cursor = formatCursor(this.epoch, 0)
  }

  #newComposer(): TurnComposer {
    return createTurnComposer(this.#turn, { limits: this.#deps.limits })
  }
}

/** The composer checks most updates itself, in the same way and faster. */
function parsed(given: unknown): WorkerUpdate {
  const { type } = (given ?? {}) as { type?: unknown }
  if (type === 'start' || type === 'delta' || type === 'full' || type === 'done' || type === 'custom') return given as WorkerUpdate
  const found = workerUpdateSchema.safeParse(given)
  if (found.success) return found.data
  throw new RivuletError('bad_event', 'An update is a start, delta, full, done, custom, state or join with its fields')
}
