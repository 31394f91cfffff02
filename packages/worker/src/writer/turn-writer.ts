/**
 * Writes the output of one turn into its log, in order, exactly once.
 *
 * The first delta is handed to the appender at once. While an append is on its way, further events wait and are merged, and leave after its reply. A batch that was
 * sent is frozen until its reply: a retry has the same numbers and the same entries, so a lost reply cannot write anything twice. An agent is
 * blocked only when more than `maxUnsentBytes` wait, so a model is not read faster than Redis takes it.
 */
import { encodeEvent } from '@rivulet/broker'
import {
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
import { appendPatiently } from './patient-append.ts'
import { createUnsentEvents, type DeltaMode, type Unsent } from './unsent-events.ts'
import { changeState, firstState, isBusy, isOpen, maySend, stoppedOf, type WriterChange } from './writer-state.ts'

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
  /** Asks whether the log still has the turn's output, and writes it again if not. */
  checkLog(): void
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
  let state = firstState(firstEpoch)
  let waiters: (() => void)[] = []

  return {
    ...{ say, write, join, changeState: changeTaskState, checkOpen, end, drain, reopen, checkLog, pause },
    ...{ state: composer.state, room: composer.room, messageAt: composer.messageAt, messages: composer.messages },
    settleState: () => enqueue(composer.settleState()),
    isOver: () => !isOpen(state),
    stop: reason => change({ to: 'stopped', reason }),
    isSuperseded: () => state.life.at === 'superseded',
    nextIndex: composer.nextIndex,
    isSettled: () => state.log.at !== 'moving',
    position: () => ({ epoch: state.log.epoch, appended: state.log.appended }),
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
    if (!isOpen(state)) throw turnOver('ended')
  }

  function throwIfStopped(): void {
    const stopped = stoppedOf(state)
    if (stopped) throw stopped.reason
  }

  function end(status: Exclude<MessageStatus, 'streaming'>, error?: Failure): void {
    if (!isOpen(state)) return
    enqueue([...composer.closeAll(status, error), ...(status === 'complete' ? composer.settleState() : [])])
    change({ to: 'ended' })
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
    while (unsent.bytes() > maxUnsentBytes && !stoppedOf(state)) await woken()
    throwIfStopped()
  }

  async function drain(): Promise<void> {
    while (isBusy(state) && !stoppedOf(state)) await woken()
    throwIfStopped()
  }

  function enqueue(events: Event[]): void {
    if (state.life.at === 'silent' && events.some(({ type }) => type === 'message.delta' || type === 'message.replaced')) {
      change({ to: 'speaking' })
      onFirstWords?.()
    }
    unsent.add(events)
    send()
  }

  function send(): void {
    if (unsent.isReady() && maySend(state)) sendNow(unsent.take(maxEntriesPerAppend))
  }

  function sendNow(batch: readonly Unsent[]): void {
    change({ to: 'sending' })
    void sendUntilRest(batch)
  }

  async function sendUntilRest(batch: readonly Unsent[]): Promise<void> {
    try {
      await sendBatch(batch)
    } catch {
      // A log that cannot be reopened, because the server refuses us or we are leaving, is no longer ours.
      lose('superseded')
    } finally {
      rest()
    }
  }

  async function sendBatch(batch: readonly Unsent[]): Promise<void> {
    const { epoch, appended } = state.log
    const append = { task: turn.task, epoch, first: appended + 1, entries: batch.map(({ event }) => encodeEvent(event)) }
    const result = await appendPatiently(append, { appender, backpressureMs, isStopped: () => stoppedOf(state) !== null })
    if (result instanceof RivuletError) return lose(result)
    switch (result) {
      case 'ok':
      case 'duplicate':
        change({ to: 'appended', entries: batch.length })
        return unsent.settle(batch)
      case 'gap':
      case 'missing':
        return moveToNewEpoch(batch)
      case 'fenced':
      case 'closed':
        onFenced()
        return lose('superseded')
      case 'full':
        return lose(new RivuletError('output_too_large', `The output of the turn exceeds ${limitNames.turnBytes}`))
      case 'stopped':
        // The caller of `stop` gave the reason, and this worker may still have to finish the turn.
        return
      default:
        return result satisfies never
    }
  }

  /** Nothing is under way any more: what has been said meanwhile is sent. */
  function rest(): void {
    change({ to: 'idle' })
    send()
    wake()
  }

  /**
   * Redis does not report that it lost a log, so the viewers of a turn without new output would see none of it. An append without entries finds out; an
   * append that is under way does so, too.
   */
  function checkLog(): void {
    if (isOpen(state) && maySend(state)) sendNow([])
  }

  function pause(isPaused: boolean): void {
    change({ to: isPaused ? 'paused' : 'resumed' })
    send()
  }

  async function reopen(): Promise<void> {
    do await drain()
    while (isBusy(state))
    await moveToNewEpoch([]).finally(rest)
    await drain()
  }

  /** The composer's fold holds what was sent and what waits alike, so the new epoch gets that. */
  async function moveToNewEpoch(batch: readonly Unsent[]): Promise<void> {
    change({ to: 'moving' })
    const epoch = await askReopen(state.log.epoch)
    if (epoch === null) return lose('superseded')
    change({ to: 'epoch', epoch })
    unsent.replace(batch, composer.rewrite())
  }

  function lose(reason: RivuletError | 'superseded'): void {
    change(reason === 'superseded' ? { to: 'superseded' } : { to: 'stopped', reason })
    onLost(reason)
  }

  function woken(): Promise<void> {
    return new Promise(resolve => waiters.push(resolve))
  }

  function wake(): void {
    const woken = waiters
    waiters = []
    for (const resolve of woken) resolve()
  }
}
