/**
 * Writes what one turn says into its log, in order, exactly once.
 *
 * The first delta leaves at once. While an append is on its way, what follows is merged and leaves with its reply. A batch that was sent is
 * frozen until it is answered: a retry has the same numbers and the same entries, so a lost reply cannot write anything twice. An agent is
 * blocked only when more than `maxUnsentBytes` wait, so a model is not read faster than Redis takes it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type AppendAnswer, encodeEvent } from '@rivulet/broker'
import {
  type ComposedTurn,
  createTurnComposer,
  defaultLimits,
  type Event,
  type EventOf,
  type Failure,
  type Limits,
  limitNames,
  type Message,
  type MessageStatus,
  mergeDeltas,
  RivuletError,
  type Update,
} from '@rivulet/protocol'
import type { Appender } from './appender.ts'
import { turnOver } from './turn-over.ts'

export const maxUnsentBytes = 1024 * 1024
const maxEntriesPerAppend = 500
const defaultBackpressureMs = 30_000
const taken = Promise.resolve()

export type TurnWriter = {
  /** Takes an update without waiting. */
  say(update: Update, options?: { strict?: boolean }): void
  /** Takes an update; waits while too much is unsent. */
  write(update: Update, options?: { strict?: boolean }): Promise<void>
  /** Throws when nothing can be said any more. */
  checkOpen(): void
  /** Whether nothing can be said any more. */
  isOver(): boolean
  /** Closes what is open. Nothing can be said any more; what was said is still sent. */
  end(status: Exclude<MessageStatus, 'streaming'>, error?: Failure): void
  /** Resolves when everything said so far is in the log. */
  drain(): Promise<void>
  /** Moves to a new epoch, and says there what was said in the old one. */
  reopen(): Promise<void>
  /** Nothing is said or sent any more. */
  stop(reason: unknown): void
  /** Whether another worker has the turn now. */
  isSuperseded(): boolean
  messageAt(index: number): Message | undefined
  messages(): Message[]
  nextIndex(): number
  /** False while it moves to a new epoch. */
  isSettled(): boolean
  /** Where the log stands for the server's `finish`. */
  position(): { epoch: number; appended: number }
}

export type TurnWriterDeps = {
  turn: ComposedTurn
  epoch: number
  appender: Appender
  /** Asks the server for a new epoch; null when the turn is no longer ours. */
  askReopen: (epoch: number) => Promise<number | null>
  /** The log rejected an append, because another worker has the turn. */
  onFenced: () => void
  /** The first time that words are said. */
  onFirstWords?: (() => void) | undefined
  /** The turn is lost, or cannot go on. */
  onLost: (reason: RivuletError | 'superseded') => void
  /** Default: the contract's. */
  limits?: Pick<Limits, 'deltaBytes' | 'turnBytes'>
  /** How long a Redis that is out of memory is waited for. Default 30,000. */
  backpressureMs?: number | undefined
}

export function createTurnWriter({
  turn,
  epoch: firstEpoch,
  appender,
  askReopen,
  onFenced,
  onFirstWords,
  onLost,
  limits = defaultLimits,
  backpressureMs = defaultBackpressureMs,
}: TurnWriterDeps): TurnWriter {
  const composer = createTurnComposer(turn, { limits: { ...defaultLimits, ...limits } })
  let epoch = firstEpoch
  let appended = 0
  let pending: Unsent[] = []
  let unsentBytes = 0
  let sending: Promise<void> | null = null
  let hasEnded = false
  let hasSpoken = false
  let stopped: { reason: unknown } | null = null
  let waiters: (() => void)[] = []
  let isMoving = false
  let isSuperseded = false

  return {
    say,
    write,
    checkOpen,
    isOver: () => hasEnded || stopped !== null,
    end,
    drain,
    reopen,
    stop,
    isSuperseded: () => isSuperseded,
    messageAt: composer.messageAt,
    messages: composer.messages,
    nextIndex: composer.nextIndex,
    isSettled: () => !isMoving,
    position: () => ({ epoch, appended }),
  }

  function say(update: Update, options?: { strict?: boolean }): void {
    checkOpen()
    enqueue(composer.compose(update, options))
  }

  function checkOpen(): void {
    if (stopped) throw stopped.reason
    if (hasEnded) throw turnOver('ended')
  }

  function end(status: Exclude<MessageStatus, 'streaming'>, error?: Failure): void {
    if (hasEnded || stopped) return
    hasEnded = true
    enqueue(composer.closeAll(status, error))
  }

  /** Not async itself: nearly always there is nothing to wait for. */
  function write(update: Update, options?: { strict?: boolean }): Promise<void> {
    try {
      say(update, options)
    } catch (error) {
      return Promise.reject(error)
    }
    return unsentBytes > maxUnsentBytes ? waitForRoom() : taken
  }

  async function waitForRoom(): Promise<void> {
    while (unsentBytes > maxUnsentBytes && !stopped) await new Promise<void>(resolve => waiters.push(resolve))
    if (stopped) throw stopped.reason
  }

  async function drain(): Promise<void> {
    while (sending && !stopped) await sending
    if (stopped) throw stopped.reason
  }

  function stop(reason: unknown): void {
    stopped ??= { reason }
    wake()
  }

  function enqueue(events: Event[]): void {
    if (!hasSpoken && events.some(({ type }) => type === 'message.delta' || type === 'message.replaced')) {
      hasSpoken = true
      onFirstWords?.()
    }
    for (const event of events) {
      const size = sizeOf(event)
      unsentBytes += size
      const last = pending.at(-1)
      // Three bytes is the most that one UTF-16 unit can take.
      const merged = last && (last.size + size) * 3 <= limits.deltaBytes ? mergeEvents(last.event, event) : null
      if (last && merged) pending[pending.length - 1] = { event: merged, size: last.size + size, said: last.said + 1 }
      else pending.push({ event, size, said: 1 })
    }
    if (pending.length > 0 && !sending && !stopped) {
      // A log that cannot be reopened, because the server refuses us or we are leaving, is no longer ours.
      sending = sendPending()
        .catch(() => lose('superseded'))
        .finally(() => {
          sending = null
          wake()
        })
    }
  }

  async function sendPending(): Promise<void> {
    while (pending.length > 0 && !stopped) {
      const batch = pending.splice(0, maxEntriesPerAppend)
      const answer = await appendUntilAnswered(batch)
      // The caller of `stop` gave the reason, and this worker may still have to finish the turn.
      if (answer === 'stopped') return
      if (answer === 'ok' || answer === 'duplicate') {
        appended += batch.length
        unsentBytes -= bytesOf(batch)
        wake()
      } else if (answer === 'gap' || answer === 'missing') {
        pending.unshift(...batch)
        await moveToNewEpoch()
      } else {
        if (answer === 'fenced' || answer === 'closed') onFenced()
        lose(
          answer === 'full' ? new RivuletError('output_too_large', `The output of the turn exceeds ${limitNames.turnBytes}`) : 'superseded',
        )
      }
    }
  }

  async function appendUntilAnswered(batch: readonly Unsent[]): Promise<AppendAnswer | 'stopped'> {
    const append = { task: turn.task, epoch, first: appended + 1, entries: batch.map(({ event }) => encodeEvent(event)) }
    const said = batch.reduce((sum, one) => sum + one.said, 0)
    let outOfMemorySince: number | null = null
    for (let attempt = 1; !stopped; attempt += 1) {
      try {
        return await appender.append(append, said)
      } catch (error) {
        const isOutOfMemory = error instanceof Error && error.message.includes('OOM')
        outOfMemorySince = isOutOfMemory ? (outOfMemorySince ?? performance.now()) : null
        if (outOfMemorySince !== null && performance.now() - outOfMemorySince > backpressureMs) {
          lose(new RivuletError('stream_backpressure', 'Redis is out of memory', { cause: error }))
        } else {
          await sleep(Math.min(1_000, 50 * 2 ** attempt) * (0.5 + Math.random() / 2))
        }
      }
    }
    return 'stopped'
  }

  async function reopen(): Promise<void> {
    await drain()
    await moveToNewEpoch()
    enqueue([])
    await drain()
  }

  /** The fold holds what was sent and what waits alike; only notices that are not part of it are kept as they are. */
  async function moveToNewEpoch(): Promise<void> {
    isMoving = true
    const raised = await askReopen(epoch).finally(() => {
      isMoving = false
    })
    if (raised === null) return lose('superseded')
    epoch = raised
    appended = 0
    const notices = pending.filter(({ event }) => event.type === 'custom')
    pending = [...composer.rewrite().map(event => ({ event, size: sizeOf(event), said: 1 })), ...notices]
    unsentBytes = bytesOf(pending)
  }

  function lose(reason: RivuletError | 'superseded'): void {
    isSuperseded = reason === 'superseded'
    stop(reason === 'superseded' ? turnOver('another worker has it') : reason)
    onLost(reason)
  }

  function wake(): void {
    const woken = waiters
    waiters = []
    for (const resolve of woken) resolve()
  }
}

/** An event that waits, about how many bytes it is, and how many were merged into it. */
type Unsent = { event: Event; size: number; said: number }

function bytesOf(unsent: readonly Unsent[]): number {
  return unsent.reduce((bytes, { size }) => bytes + size, 0)
}

/** Spelled out, because it is done for nearly every word, and a spread takes several times as long. */
function mergeEvents(first: Event, second: Event): EventOf<'message.delta'> | null {
  if (first.type !== 'message.delta' || second.type !== 'message.delta' || first.index !== second.index) return null
  const delta = mergeDeltas(first.delta, second.delta)
  const { type, task, turn, attempt, at, index, offset } = first
  return delta && { type, task, turn, attempt, at, index, delta, offset }
}

/** Near enough for a buffer: what a delta says, in UTF-16 units, or a whole event as JSON. */
function sizeOf(event: Event): number {
  if (event.type !== 'message.delta') return JSON.stringify(event).length
  const { delta } = event
  if ('text' in delta) return delta.text.length
  return delta.type === 'media' ? delta.bytes.length : JSON.stringify(delta).length
}
