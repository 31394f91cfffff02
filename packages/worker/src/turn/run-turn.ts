/**
 * Runs one turn in this process, from the claim to the server's confirmation that it is stored.
 *
 * Whatever the handler does (returns, throws, hangs), the turn ends in one of five ways: finished with an outcome, lost to another worker,
 * released, parked to wait, or never claimed. A handler that ignores its signal is abandoned: everything it writes afterwards is rejected.
 */
import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { JobEnd } from '@rivulet/broker'
import type { AskResult, JoinedInput, ParkResult, WantedWait } from '@rivulet/contract/internal'
import {
  closingStatus,
  digestOf,
  endOf,
  type Message,
  maxUsageRecords,
  RivuletError,
  sumUsage,
  type TurnId,
  type UsageRecord,
} from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { Tracer } from '@rivulet/runtime/trace'
import type { AgentDefinition } from '../define-agent.ts'
import type { RunIsolated } from '../isolation.ts'
import type { Logger } from '../logger.ts'
import type { TurnCalls } from '../server-calls.ts'
import type { TurnAppend } from '../transport/transport.ts'
import type { WorkerObserver } from '../worker-observer.ts'
import type { Appender } from '../writer/appender.ts'
import { withoutSecretErrors } from '../writer/secret-errors.ts'
import { createTurnWriter } from '../writer/turn-writer.ts'
import { runHandler } from './handler.ts'
import { createTakeInputs } from './inputs.ts'
import { runApart } from './isolated-run.ts'
import type { HoldTurn } from './running-turn.ts'
import { tooLarge } from './steps/step-memory.ts'
import { createSteps } from './steps/steps.ts'
import { createTurn } from './turn.ts'
import { openTurnAccount } from './turn-account.ts'
import { type Ending, failed, overBy, settleTurn } from './turn-end.ts'
import { abortReason, turnOver } from './turn-over.ts'
import { createUsageNotes } from './usage-notes.ts'
import { createAsk } from './waits/ask.ts'
import { createReplay } from './waits/replay.ts'
import { createSpawn } from './waits/spawn.ts'
import { createWaits } from './waits/waits.ts'

export type RunTurnDeps = {
  worker: string
  server: TurnCalls
  appender: Appender<TurnAppend>
  log: Logger
  hold: HoldTurn
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
      // A heartbeat may find the turn ended while the response to its finish is on its way: its handler was not stopped.
      if (!isEnding) abort.abort(abortReason(overBy(ending)))
    }
  })
  const { attempt, firstIndex, kept, state, keptState } = claim
  const composed = { task: claim.task.id, turn: claim.turn.number, attempt, firstIndex, kept, state, keptState }
  const writer = createTurnWriter({
    turn: composed,
    epoch: claim.epoch,
    // Spelled out, because the spread took V8 a fifteenth of a worker's CPU at 10,000 deltas a second.
    appender: {
      append: ({ task, epoch, first, entries }) => appender.append({ task, epoch, first, entries, turnId: id, claimId }),
    },
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
      checkLog: writer.checkLog,
      isParking: () => isParking,
    },
    'here',
  )
  // Beyond what a timer can wait, the server ends it.
  const deadline = claim.timeLeftMs <= longestTimerMs ? setTimeout(() => interrupt(failed(tooLate())), claim.timeLeftMs) : undefined

  const waits = createWaits({
    ask,
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
    budget: claim.budget,
  })
  used.learn(claim.isOverBudget)
  const steps = createSteps({
    writer: withoutSecretErrors(replay.writer, claim.secrets),
    remembered: claim.steps,
    remember,
    sendUsage: used.send,
    maxBytes: limits.stepsBytes,
  })
  const { turn, unawaited } = createTurn({
    ...{ claim, ...steps, log, span },
    addUsage: (usage, about) => {
      steps.addUsage(usage, about)
      used.spend(usage, about?.model)
    },
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
    useStore: call => server.store({ turnId: id, claimId, call }, abort.signal),
    files: {
      read: file => server.files.read(file, { turnId: id, claimId }, abort.signal),
      store: (bytes, about) => server.files.store(bytes, about, { turnId: id, claimId }, abort.signal),
    },
  })
  try {
    const handled = runHandler(id, agent, turn, steps.writer).then(
      () => {
        const [forgotten] = [...unawaited(), ...waits.pending().map(name => `turn.ask "${name}"`)]
        if (forgotten) return failed(new RivuletError('bad_call', `The handler ended before its ${forgotten} ended: await it`))
        replay.writer.end('complete')
        return completed()
      },
      error => failed(error, claim.secrets),
    )
    const ending = await Promise.race([handled, interrupted])
    isEnding = true
    silence(ending)
    await settleTurn(withUsage(ending), { turnId: id, claimId, server, writer, account, used, leaving })
    return 'done'
  } finally {
    clearTimeout(deadline)
    lease.drop()
  }

  function completed(): Ending {
    return { how: 'finished', outcome: { status: 'completed', stopReason: endOf([...kept, ...writer.messages()]).stopReason } }
  }

  /** With what this attempt has used. */
  function withUsage(ending: Ending): Ending {
    const usage = sumUsage([endOf([...kept, ...writer.messages()]).usage, steps.usage()])
    return ending.how === 'finished' && usage ? { ...ending, outcome: { ...ending.outcome, usage } } : ending
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

  /** What was said before stands in the log before the question, so that every reader has it with the question. */
  async function ask(wanted: WantedWait[]): Promise<AskResult> {
    await writer.drain()
    const index = firstIndex + writer.nextIndex()
    return server.ask({ turnId: id, claimId, waits: wanted.map(wait => ({ ...wait, index })) }, abort.signal)
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

  async function remember(name: string, memory: string, records: UsageRecord[], durationMs: number): Promise<void> {
    const own = { turnId: id, claimId, name, memory, durationMs }
    const stored = { ...own, ...(records.length > 0 && { usage: records.slice(0, maxUsageRecords) }) }
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

  function onFenced(): void {
    log.warn({ epoch: writer.position().epoch }, 'write rejected: another worker has the turn')
    deps.onFenced()
  }
}

/** Calls that may themselves wait for an answer. */
function isAround(what: string): boolean {
  return what === 'turn.run' || what === 'turn.autoSend'
}

function tooLate(): RivuletError {
  return new RivuletError('deadline_exceeded', 'The turn exceeded its deadline')
}
