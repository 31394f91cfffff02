/**
 * Writes the output of one turn into its log, in order, exactly once.
 *
 * The first delta is sent at once. While an append is on its way, further events wait and are merged, and leave after its reply. A batch that was
 * sent is frozen until its reply: a retry has the same numbers and the same entries, so a lost reply cannot write anything twice. An agent is
 * blocked only when more than `maxUnsentBytes` wait, so a model is not read faster than Redis takes it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type AppendResult, encodeEvent } from '@rivulet/broker'
import {
  backoffMs,
  type ComposedTurn,
  type Content,
  createTurnComposer,
  defaultLimits,
  type Event,
  type Failure,
  type Limits,
  limitNames,
  type Message,
  type MessageStatus,
  RivuletError,
  type State,
  type StateChange,
  type Update,
} from '@rivulet/protocol'
import { turnOver } from '../turn/turn-over.ts'
import type { Appender } from './appender.ts'
import { createUnsentEvents, type DeltaMode, type Unsent } from './unsent-events.ts'
import { changeState, stoppedOf, type WriterChange, type WriterState } from './writer-state.ts'

export const maxUnsentBytes = 1024 * 1024
const maxEntriesPerAppend = 500
const defaultBackpressureMs = 30_000
const taken = Promise.resolve()

export type TurnWriter = {
  /** Takes an update without waiting. */
  say(update: Update, options?: { strict?: boolean }): void
  /** Takes an update; waits while too much is unsent. */
  write(update: Update, options?: { strict?: boolean }): Promise<void>
  /** Another turn joins: its inputs become messages of the user. Returns these. */
  join(turnNumber: number, inputs: readonly Content[]): Message[]
  /** Changes the state of the task; waits while too much is unsent. */
  changeState(change: StateChange): Promise<void>
  /** The log gets the state that the turn has, if a turn that parked has not repeated all of its changes. */
  settleState(): void
  /** The state of the task as the turn has made it. */
  state(): State
  /** How many bytes can still be said. */
  room(): number
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
  /** Sends nothing until it is called again with false. What is said meanwhile waits. */
  pause(isPaused: boolean): void
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
  /** How deltas travel. Default `merged`. */
  deltas?: DeltaMode | undefined
}

/** The position of the log. While it moves to a new epoch, responses about the old epoch are ignored. */
type Place = { at: 'settled' | 'moving'; epoch: number; appended: number }

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
  deltas,
}: TurnWriterDeps): TurnWriter {
  const composer = createTurnComposer(turn, { limits: { ...defaultLimits, ...limits } })
  const unsent = createUnsentEvents(limits.deltaBytes, deltas)
  let state: WriterState = { at: 'open' }
  let place: Place = { at: 'settled', epoch: firstEpoch, appended: 0 }
  let sending: Promise<void> | null = null
  let waiters: (() => void)[] = []
  let hasSpoken = false
  let isPaused = false

  return {
    say,
    write,
    join,
    changeState: changeTaskState,
    settleState: () => enqueue(composer.settleState()),
    state: composer.state,
    room: composer.room,
    checkOpen,
    isOver: () => state.at !== 'open',
    end,
    drain,
    reopen,
    pause,
    stop: reason => change({ to: 'stopped', reason }),
    isSuperseded: () => state.at === 'superseded',
    messageAt: composer.messageAt,
    messages: composer.messages,
    nextIndex: composer.nextIndex,
    isSettled: () => place.at === 'settled',
    position: () => ({ epoch: place.epoch, appended: place.appended }),
  }

  function change(change: WriterChange): void {
    state = changeState(state, change)
    if (stoppedOf(state)) wake()
  }

  function say(update: Update, options?: { strict?: boolean }): void {
    checkOpen()
    enqueue(composer.compose(update, options))
  }

  function join(turnNumber: number, inputs: readonly Content[]): Message[] {
    checkOpen()
    const from = composer.nextIndex()
    enqueue(composer.join(turnNumber, inputs))
    return inputs.flatMap((_, i) => composer.messageAt(from + i) ?? [])
  }

  async function changeTaskState(change: StateChange): Promise<void> {
    checkOpen()
    enqueue(composer.changeState(change))
    if (unsent.bytes() > maxUnsentBytes) await waitForRoom()
  }

  function checkOpen(): void {
    throwIfStopped()
    if (state.at === 'ended') throw turnOver('ended')
  }

  function throwIfStopped(): void {
    const stopped = stoppedOf(state)
    if (stopped) throw stopped.reason
  }

  function end(status: Exclude<MessageStatus, 'streaming'>, error?: Failure): void {
    if (state.at !== 'open') return
    change({ to: 'ended' })
    enqueue([...composer.closeAll(status, error), ...(status === 'complete' ? composer.settleState() : [])])
  }

  /** Not async itself: nearly always there is nothing to wait for. */
  function write(update: Update, options?: { strict?: boolean }): Promise<void> {
    try {
      say(update, options)
    } catch (error) {
      return Promise.reject(error)
    }
    return unsent.bytes() > maxUnsentBytes ? waitForRoom() : taken
  }

  async function waitForRoom(): Promise<void> {
    while (unsent.bytes() > maxUnsentBytes && !stoppedOf(state)) await new Promise<void>(resolve => waiters.push(resolve))
    throwIfStopped()
  }

  async function drain(): Promise<void> {
    while (sending && !stoppedOf(state)) await sending
    throwIfStopped()
  }

  function enqueue(events: Event[]): void {
    if (!hasSpoken && events.some(({ type }) => type === 'message.delta' || type === 'message.replaced')) {
      hasSpoken = true
      onFirstWords?.()
    }
    unsent.add(events)
    send()
  }

  function send(): void {
    if (!unsent.isReady() || sending || isPaused || stoppedOf(state)) return
    // A log that cannot be reopened, because the server refuses us or we are leaving, is no longer ours.
    sending = sendWaiting()
      .catch(() => lose('superseded'))
      .finally(() => {
        sending = null
        wake()
        // An event that came after the last batch was taken, and before this, started no sending of its own.
        send()
      })
  }

  async function sendWaiting(): Promise<void> {
    while (unsent.isReady() && !stoppedOf(state)) {
      const batch = unsent.take(maxEntriesPerAppend)
      const result = await appendUntilAcknowledged(batch)
      // The caller of `stop` gave the reason, and this worker may still have to finish the turn.
      if (result === 'stopped') return
      if (result === 'ok' || result === 'duplicate') {
        place = { ...place, appended: place.appended + batch.length }
        unsent.settle(batch)
        wake()
      } else if (result === 'gap' || result === 'missing') {
        await moveToNewEpoch(batch)
      } else {
        if (result === 'fenced' || result === 'closed') onFenced()
        lose(
          result === 'full' ? new RivuletError('output_too_large', `The output of the turn exceeds ${limitNames.turnBytes}`) : 'superseded',
        )
      }
    }
  }

  async function appendUntilAcknowledged(batch: readonly Unsent[]): Promise<AppendResult | 'stopped'> {
    const append = { task: turn.task, epoch: place.epoch, first: place.appended + 1, entries: batch.map(({ event }) => encodeEvent(event)) }
    const said = batch.reduce((sum, one) => sum + one.said, 0)
    let outOfMemorySince: number | null = null
    for (let attempt = 1; !stoppedOf(state); attempt += 1) {
      try {
        return await appender.append(append, said)
      } catch (error) {
        const isOutOfMemory = error instanceof Error && error.message.includes('OOM')
        outOfMemorySince = isOutOfMemory ? (outOfMemorySince ?? performance.now()) : null
        if (outOfMemorySince !== null && performance.now() - outOfMemorySince > backpressureMs) {
          lose(new RivuletError('stream_backpressure', 'Redis is out of memory', { cause: error }))
        } else {
          await sleep(backoffMs(attempt, { firstMs: 100, maxMs: 1_000 }))
        }
      }
    }
    return 'stopped'
  }

  function pause(paused: boolean): void {
    isPaused = paused
    send()
  }

  async function reopen(): Promise<void> {
    await drain()
    await moveToNewEpoch([])
    send()
    await drain()
  }

  /** The composer's fold holds what was sent and what waits alike, so the new epoch gets that. */
  async function moveToNewEpoch(batch: readonly Unsent[]): Promise<void> {
    place = { ...place, at: 'moving' }
    const epoch = await askReopen(place.epoch).finally(() => {
      place = { ...place, at: 'settled' }
    })
    if (epoch === null) return lose('superseded')
    place = { at: 'settled', epoch, appended: 0 }
    unsent.replace(batch, composer.rewrite())
  }

  function lose(reason: RivuletError | 'superseded'): void {
    change(reason === 'superseded' ? { to: 'superseded' } : { to: 'stopped', reason })
    onLost(reason)
  }

  function wake(): void {
    const woken = waiters
    waiters = []
    for (const resolve of woken) resolve()
  }
}
