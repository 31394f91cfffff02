/**
 * Runs one turn in this process, from the claim to the server's confirmation that it is stored.
 *
 * Whatever the handler does (returns, throws, hangs), the turn ends in one of five ways: finished with an outcome, lost to another worker,
 * released, parked to wait, or never claimed. A handler that ignores its signal is abandoned: everything it writes afterwards is rejected.
 */
import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { JobEnd } from '@rivulet/broker'
import {
  closingStatus,
  digestOf,
  type FinishBody,
  type JoinedInput,
  type Message,
  maxUsageRecords,
  type ParkResult,
  RivuletError,
  sumUsage,
  type TurnId,
  type Update,
  type UsageRecord,
  usageRecordsOf,
} from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { Tracer } from '@rivulet/runtime/trace'
import type { AgentDefinition } from '../define-agent.ts'
import { fullFailureOf, fullTextOf } from '../failure.ts'
import type { IsolatedTurn, RunIsolated } from '../isolation.ts'
import type { Place } from '../lease-thread/messages.ts'
import type { Lease } from '../lease-thread.ts'
import type { Logger } from '../logger.ts'
import type { ServerCalls } from '../server-calls.ts'
import type { WorkerObserver } from '../worker-observer.ts'
import type { Appender } from '../writer/appender.ts'
import { endOf } from '../writer/auto-send.ts'
import { createStreamPlaces } from '../writer/stream-places.ts'
import { createTurnWriter, type TurnWriter } from '../writer/turn-writer.ts'
import { createAsk } from './ask.ts'
import { createTakeInputs } from './inputs.ts'
import { createReplay } from './replay.ts'
import { createSpawn } from './spawn.ts'
import { createSteps, tooLarge } from './steps.ts'
import { createTurn, type Turn } from './turn.ts'
import { openTurnAccount } from './turn-account.ts'
import { abortReason, turnOver } from './turn-over.ts'
import { createUsageNotes } from './usage-notes.ts'
import { createWaits } from './waits.ts'

/** A turn that is being run: what heartbeats renew, and how to end it from outside. */
export type RunningTurn = {
  turnId: TurnId
  claimId: string
  epoch(): number
  /** False while it moves from one epoch to the next: what is answered about the old one means nothing then. */
  isSettled(): boolean
  lose(): void
  release(): void
  /** A wait of it may have been closed. */
  wake(): void
  /** The server may have parked it already: the next job of the turn is the one that resumes it. */
  isParking(): boolean
}

export type RunTurnDeps = {
  worker: string
  server: ServerCalls
  appender: Appender
  log: Logger
  /** Registers the turn for heartbeats. */
  hold: (turn: RunningTurn, place: Place) => Lease
  /** Whether this worker could take another turn: one that is full does not hold a turn that waits. */
  hasFreeSlot: () => boolean
  /** The log rejected a write, because another worker has the turn. */
  onFenced: () => void
  tracer?: Tracer | undefined
  observer?: WorkerObserver | undefined
  /** Fires when this worker stops without waiting for anything any more. */
  leaving: AbortSignal
  /** How long a Redis that is out of memory is waited for. */
  backpressureMs?: number | undefined
  /** Runs a turn whose workers died; absent where this process is that turn's own. */
  runApart?: RunIsolated | undefined
}

const longestTimerMs = 2 ** 31 - 1

type Ending = { how: 'finished'; outcome: FinishBody['outcome'] } | { how: 'lost' } | { how: 'released' } | { how: 'parked' }

/** Returns what becomes of the job that brought the turn. */
export async function runTurn(agent: AgentDefinition, id: TurnId, deps: RunTurnDeps, claimId: string = randomUUID()): Promise<JobEnd> {
  const { worker, server, appender, leaving } = deps
  const claim = await server.claim({ worker, turnId: id, claimId }, leaving)
  if (failpoint) await failpoint('claim answered', claim)
  if (claim.result !== 'claimed') {
    deps.log.debug({ turnId: id, result: claim.result }, 'claim rejected')
    return claim.result === 'early' ? { backInMs: claim.waitMs } : 'done'
  }
  if (claim.isolated && deps.runApart) {
    await runApart(deps.runApart, { agent: agent.name, turnId: id, claimId }, claim.epoch, deps)
    return 'done'
  }
  const account = openTurnAccount({ agent: agent.name, claim, log: deps.log, tracer: deps.tracer, observer: deps.observer })
  const { log, span } = account
  const { limits } = claim
  const abort = new AbortController()
  // Handed to everything that waits in the turn, however much that is at a time.
  setMaxListeners(0, abort.signal)
  let isEnding = false
  let isParking = false
  let interrupt: (ending: Ending) => void = () => {}
  const interrupted = new Promise<Ending>(resolve => {
    interrupt = ending => {
      // Before the handler hears of it: what it says about its signal comes too late.
      silence(ending)
      resolve(ending)
      abort.abort(abortReason(overBy(ending)))
    }
  })
  const { attempt, firstIndex, kept, state, keptState } = claim
  const composed = { task: claim.task.id, turn: claim.turn.number, attempt, firstIndex, kept, state, keptState }
  const writer = createTurnWriter({
    turn: composed,
    epoch: claim.epoch,
    appender,
    askReopen,
    onFenced,
    onFirstWords: account.spoke,
    onLost: reason => interrupt(reason === 'superseded' ? { how: 'lost' } : failed(reason)),
    limits,
    backpressureMs: deps.backpressureMs,
    deltas: agent.deltas,
  })
  const lease = deps.hold(
    {
      ...{ turnId: id, claimId },
      epoch: () => writer.position().epoch,
      isSettled: writer.isSettled,
      // While it parks, the reply of the server tells what has become of it.
      lose: () => (isParking ? undefined : interrupt({ how: 'lost' })),
      // A handler that has ended is finished here, so that no other worker runs the turn again.
      release: () => (isEnding ? undefined : interrupt({ how: 'released' })),
      wake: () => waits.wake(),
      isParking: () => isParking,
    },
    'here',
  )
  // Beyond what a timer can wait, the server ends it.
  const deadline = claim.timeLeftMs <= longestTimerMs ? setTimeout(() => interrupt(failed(tooLate())), claim.timeLeftMs) : undefined

  const waits = createWaits({
    ask: wanted => server.ask({ turnId: id, claimId, waits: wanted }, abort.signal),
    read: () => server.waits({ turnId: id, claimId }, abort.signal),
    park,
    reopen: writer.reopen,
    lose: () => interrupt({ how: 'lost' }),
    leave: () => interrupt({ how: 'parked' }),
    noteOpen: lease.noteOpen,
    isIdle: () => !unawaited().some(what => !isAround(what) || hasOpenMessage()),
    hasFreeSlot: deps.hasFreeSlot,
    signal: abort.signal,
  })
  const past = claim.turn.waits?.map(({ name }) => name) ?? []
  const replay = createReplay(writer, composed, () => past.some(name => !waits.hasReturned(name)))
  const used = createUsageNotes({
    deliver: records => server.usage({ turnId: id, claimId, records }, leaving),
    onError: error => log.warn({ err: error }, 'could not report usage'),
  })
  used.learn(claim.isOverBudget)
  const steps = createSteps({
    writer: replay.writer,
    remembered: claim.steps,
    remember,
    sendUsage: used.send,
    maxBytes: limits.stepsBytes,
  })
  const { turn, unawaited } = createTurn({
    ...{ claim, ...steps, log, span },
    ask: createAsk(waits, steps.within),
    spawn: createSpawn({
      ...{ waits, within: steps.within },
      ask: children => server.spawn({ turnId: id, claimId, children }, abort.signal),
      read: async name => (await server.child({ turnId: id, claimId, name }, abort.signal)).filter(({ author }) => author === 'agent'),
    }),
    takeInputs: createTakeInputs({ ...steps, take, join: steps.writer.join }),
    checkBudget: used.checkBudget,
    signal: abort.signal,
    loadHistory,
    files: {
      read: file => server.files.read(file, { turnId: id, claimId }, abort.signal),
      store: (bytes, about) => server.files.store(bytes, about, { turnId: id, claimId }, abort.signal),
    },
  })
  try {
    const handled = inNameOf(id, () => handle(agent, turn, steps.writer)).then(
      () => {
        const [forgotten] = [...unawaited(), ...waits.pending().map(name => `turn.ask "${name}"`)]
        if (forgotten) return failed(new RivuletError('bad_call', `The handler ended before its ${forgotten} ended: await it`))
        replay.writer.end('complete')
        return finished(completed())
      },
      error => failed(error),
    )
    const ending = await Promise.race([handled, interrupted])
    isEnding = true
    silence(ending)
    await settle(ending)
    return 'done'
  } finally {
    clearTimeout(deadline)
    lease.drop()
  }

  function completed(): FinishBody['outcome'] {
    return { status: 'completed', stopReason: endOf([...kept, ...writer.messages()]).stopReason }
  }

  /** What this attempt has used. */
  function usage(): Pick<FinishBody['outcome'], 'usage'> {
    const all = sumUsage([endOf([...kept, ...writer.messages()]).usage, steps.usage()])
    return all ? { usage: all } : {}
  }

  async function askReopen(epoch: number): Promise<number | null> {
    const raised = await server.reopen({ turnId: id, epoch, claimId }, leaving)
    if (raised !== null) lease.moveTo(raised)
    return raised
  }

  /** Before this turn's own output, which a park may have stored already. */
  async function loadHistory(): Promise<Message[]> {
    const messages = await server.history({ turnId: id, claimId }, abort.signal)
    return messages.filter(({ index }) => index < firstIndex)
  }

  function hasOpenMessage(): Message | undefined {
    return writer.messages().find(({ status }) => status === 'streaming')
  }

  /** Nothing is sent while the server stores what was. */
  async function park(): Promise<ParkResult> {
    replay.checkWhole()
    const open = hasOpenMessage()
    if (open) throw new RivuletError('bad_call', `Message ${open.index - firstIndex} is open while the turn waits: close it before you ask`)
    writer.settleState()
    await writer.drain()
    writer.pause(true)
    isParking = true
    const { epoch, appended } = writer.position()
    const answer = await server.park({ turnId: id, epoch, claimId, n: appended, digest: digestOf(writer.messages()) }, abort.signal)
    isParking = answer === 'parked'
    if (!isParking) writer.pause(false)
    return answer
  }

  async function take({ after, upTo }: { after: number; upTo?: number }): Promise<JoinedInput[]> {
    const wanted = { turnId: id, claimId, after, ...(upTo !== undefined && { upTo }), maxBytes: Math.max(0, writer.room()) }
    const joined = await server.take(wanted, abort.signal)
    if (joined) return joined
    interrupt({ how: 'lost' })
    throw turnOver('lost')
  }

  async function remember(name: string, memory: string, records: UsageRecord[]): Promise<void> {
    const stored = { turnId: id, claimId, name, memory, ...(records.length > 0 && { usage: records.slice(0, maxUsageRecords) }) }
    const { result, isOverBudget } = await server.step(stored, abort.signal)
    used.learn(isOverBudget)
    used.send(records.slice(maxUsageRecords))
    if (result === 'too_large') throw tooLarge(name, limits.stepsBytes)
    if (result === 'remembered') return
    interrupt({ how: 'lost' })
    throw turnOver('lost')
  }

  function silence(ending: Ending): void {
    if (ending.how === 'finished') writer.end(closingStatus(ending.outcome), ending.outcome.error)
    else writer.stop(overBy(ending))
  }

  async function settle(ending: Ending): Promise<void> {
    if (ending.how === 'finished') return finish({ ...ending.outcome, ...usage() })
    // No more of the log is written, and none of it may be read.
    if (ending.how !== 'parked') used.send(usageRecordsOf(writer.messages()))
    if (ending.how === 'released') await used.settled()
    if (ending.how === 'released') await server.release({ turnId: id, epoch: writer.position().epoch, claimId }, leaving)
    log.info({}, `turn ${ending.how}`)
    account.end(ending.how)
  }

  function onFenced(): void {
    log.warn({ epoch: writer.position().epoch }, 'write rejected: another worker has the turn')
    deps.onFenced()
  }

  async function finish(outcome: FinishBody['outcome']): Promise<void> {
    const { error, detail } = outcome
    if (error) log.warn({ error: { ...error, ...(detail !== undefined && { detail }) } }, 'turn failed')
    try {
      // A log that takes nothing more is left as it is: the server closes what stands open there.
      await used.settled()
      await writer.drain().catch(reason => log.info({ reason: fullTextOf(reason) }, 'the log rejected the rest of the output'))
      while (!writer.isSuperseded()) {
        const { epoch, appended } = writer.position()
        const digest = digestOf(writer.messages())
        const result = await server.finish({ turnId: id, epoch, claimId, outcome, n: appended, digest }, leaving)
        if (failpoint) await failpoint('finish answered', id, epoch, result)
        if (result !== 'gap') return account.end(outcome.status, { result }, outcome.error)
        await writer.reopen()
      }
      log.info({}, 'turn lost while finishing')
      account.end('lost')
    } catch (error) {
      log.warn({ err: error }, 'could not finish the turn')
      account.end('lost')
    } finally {
      writer.stop(turnOver('ended'))
    }
  }
}

/** Holds the turn until its own process has claimed it. If that process is not started, because this worker stops, the turn is released. */
async function runApart(run: RunIsolated, isolated: IsolatedTurn, epoch: number, { hold, server, leaving }: RunTurnDeps): Promise<void> {
  const lost = new AbortController()
  const { turnId, claimId } = isolated
  const lease = hold(
    { turnId, claimId, epoch: () => epoch, isSettled: () => true, lose, release: () => {}, wake: () => {}, isParking: () => false },
    'waiting',
  )
  try {
    const how = await run(isolated, { signal: lost.signal, onStart: lease.leave })
    if (how === 'not started' && !lost.signal.aborted) await server.release({ turnId, epoch, claimId }, leaving)
  } finally {
    lease.drop()
  }

  function lose(): void {
    lost.abort()
    lease.drop()
  }
}

/**
 * Calls the handler from a function named after its turn. V8 lists that name in the stack of everything the handler calls or awaits, where the
 * watchdog reads it (`lease-thread/watchdog.mjs`). An AsyncLocalStorage would also cover callbacks, but costs 1 µs for each awaited update on Node 20.
 */
function inNameOf(turnId: TurnId, work: () => Promise<void>): Promise<void> {
  const named = async () => await work()
  return Object.defineProperty(named, 'name', { value: `turn ${turnId}` })()
}

async function handle(agent: AgentDefinition, turn: Turn, writer: TurnWriter): Promise<void> {
  const running: unknown = agent.run(turn)
  if (isAsyncIterable(running)) {
    const places = createStreamPlaces(writer)
    for await (const update of running) await places.write(update)
    return
  }
  const returned = await running
  if (returned === undefined) return
  throw new RivuletError(
    'bad_call',
    `Agent ${agent.name} returned ${typeof returned}; a handler yields or sends its output and returns nothing`,
  )
}

/** Its updates are checked as they come. */
function isAsyncIterable(value: unknown): value is AsyncIterable<Update> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}

function finished(outcome: FinishBody['outcome']): Ending {
  return { how: 'finished', outcome }
}

/** Calls that may themselves wait for an answer. */
function isAround(what: string): boolean {
  return what === 'turn.run' || what === 'turn.autoSend'
}

function overBy({ how }: Ending): RivuletError {
  return turnOver(how === 'finished' ? 'ended' : how)
}

function tooLate(): RivuletError {
  return new RivuletError('deadline_exceeded', 'The turn exceeded its deadline')
}

function failed(error: unknown): Ending {
  const { detail, ...failure } = fullFailureOf(error)
  return finished({ status: 'failed', stopReason: 'error', error: failure, ...(detail !== undefined && { detail }) })
}
