/**
 * One turn in this process, from the claim to the server's word that it is stored.
 *
 * Whatever the handler does (returns, throws, hangs), the turn ends in one of four ways: finished with an outcome, lost to somebody else, given
 * back, or never ours. A handler that does not listen to its signal is left behind: nothing it writes afterwards gets anywhere.
 */
import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { closingStatus, digestOf, type Failure, type FinishBody, RivuletError, type Tracer, type Update } from '@rivulet/protocol'
import type { Appender } from './appender.ts'
import { endOf } from './auto-send.ts'
import type { AgentDefinition } from './define-agent.ts'
import { failureOf } from './failure.ts'
import type { Logger } from './logger.ts'
import type { ServerCalls } from './server-calls.ts'
import { createSteps, tooLarge } from './steps.ts'
import { createTurn, type Turn } from './turn.ts'
import { openTurnAccount } from './turn-account.ts'
import { abortReason, turnOver } from './turn-over.ts'
import { createTurnWriter, type TurnWriter } from './turn-writer.ts'
import type { WorkerObserver } from './worker-observer.ts'

/** A turn that is being run: what heartbeats renew, and how to end it from outside. */
export type RunningTurn = {
  turn: string
  epoch(): number
  /** False while it moves from one epoch to the next: what is answered about the old one means nothing then. */
  isSettled(): boolean
  lose(): void
  giveBack(): void
}

export type RunTurnDeps = {
  worker: string
  server: ServerCalls
  appender: Appender
  log: Logger
  /** Registers the turn for heartbeats; answers what takes it off again. */
  hold: (turn: RunningTurn) => () => void
  /** The log refused a write: somebody else has the turn. */
  onFenced: () => void
  tracer?: Tracer | undefined
  observer?: WorkerObserver | undefined
  /** Fires when this worker stops without waiting for anything any more. */
  leaving: AbortSignal
  /** How long a Redis that is out of memory is waited for. */
  backpressureMs?: number | undefined
  /** Runs a turn whose worker died; absent where this process is that turn's own. */
  runApart?: ((turn: string, claimId: string) => Promise<void>) | undefined
}

const longestTimerMs = 2 ** 31 - 1

type Ending = { how: 'finished'; outcome: FinishBody['outcome'] } | { how: 'lost' } | { how: 'given back' }

export async function runTurn(agent: AgentDefinition, id: string, deps: RunTurnDeps, claimId: string = randomUUID()): Promise<void> {
  const { worker, server, appender, leaving, runApart } = deps
  const claim = await server.claim({ worker, turn: id, claimId }, leaving)
  // failpoint: claim answered (claim)
  if (claim.answer !== 'claimed') return deps.log.debug({ turnId: id, answer: claim.answer }, 'turn is not ours to run')
  if (claim.isolated && runApart) {
    // Ours until the process that is started now claims it for itself.
    const unhold = deps.hold({ turn: id, epoch: () => claim.epoch, isSettled: () => true, lose: () => unhold(), giveBack: () => {} })
    return runApart(id, claimId).finally(unhold)
  }
  const account = openTurnAccount({ agent: agent.name, claim, log: deps.log, tracer: deps.tracer, observer: deps.observer })
  const { log, span } = account
  const { limits } = claim
  const abort = new AbortController()
  // Handed to everything that waits in the turn, however much that is at a time.
  setMaxListeners(0, abort.signal)
  let isEnding = false
  let interrupt: (ending: Ending) => void = () => {}
  const interrupted = new Promise<Ending>(resolve => {
    interrupt = ending => {
      // Before the handler hears of it: what it says about its signal comes too late.
      silence(ending)
      resolve(ending)
      abort.abort(abortReason(overBy(ending)))
    }
  })
  const writer = createTurnWriter({
    turn: { task: claim.task.id, turn: claim.turn.number, attempt: claim.attempt, firstIndex: claim.firstIndex },
    epoch: claim.epoch,
    appender,
    askReopen: epoch => server.reopen({ turn: id, epoch, claimId }, leaving),
    onFenced,
    onFirstWords: account.spoke,
    onLost: reason => interrupt(reason === 'superseded' ? { how: 'lost' } : failed(reason)),
    limits,
    backpressureMs: deps.backpressureMs,
  })
  const unhold = deps.hold({
    turn: id,
    epoch: () => writer.position().epoch,
    isSettled: writer.isSettled,
    lose: () => interrupt({ how: 'lost' }),
    // What has ended is finished here: nobody else has to do it again.
    giveBack: () => (isEnding ? undefined : interrupt({ how: 'given back' })),
  })
  // Beyond what a timer can wait, the server ends it.
  const deadline = claim.timeLeftMs <= longestTimerMs ? setTimeout(() => interrupt(failed(tooLate())), claim.timeLeftMs) : undefined

  const steps = createSteps({ writer, remembered: claim.steps, remember, maxBytes: limits.stepsBytes })
  const { turn, unawaited } = createTurn({
    ...{ claim, ...steps, log, span },
    signal: abort.signal,
    loadHistory: () => server.history(claim.task.id, abort.signal),
  })
  try {
    const handled = handle(agent, turn, steps.writer).then(
      () => {
        const [forgotten] = unawaited()
        if (forgotten) return failed(new RivuletError('bad_call', `The handler ended before its ${forgotten} had: await it`))
        writer.end('complete')
        return finished({ status: 'completed', ...endOf(writer.messages()) })
      },
      error => failed(error),
    )
    const ending = await Promise.race([handled, interrupted])
    isEnding = true
    silence(ending)
    await settle(ending)
  } finally {
    clearTimeout(deadline)
    unhold()
  }

  async function remember(name: string, memory: string): Promise<void> {
    const answer = await server.step({ turn: id, claimId, name, memory }, abort.signal)
    if (answer === 'too_large') throw tooLarge(name, limits.stepsBytes)
    if (answer === 'remembered') return
    interrupt({ how: 'lost' })
    throw turnOver('it was lost')
  }

  function silence(ending: Ending): void {
    if (ending.how === 'finished') writer.end(closingStatus(ending.outcome), ending.outcome.error)
    else writer.stop(overBy(ending))
  }

  async function settle(ending: Ending): Promise<void> {
    if (ending.how === 'finished') return finish(ending.outcome)
    if (ending.how === 'given back') await server.release({ turn: id, epoch: writer.position().epoch }, leaving)
    log.info({}, `turn ${ending.how}`)
    account.end(ending.how === 'lost' ? 'lost' : 'given_back')
  }

  function onFenced(): void {
    log.warn({ epoch: writer.position().epoch }, 'a write was refused: somebody else has the turn')
    deps.onFenced()
  }

  async function finish(outcome: FinishBody['outcome']): Promise<void> {
    if (outcome.error) log.warn({ error: outcome.error }, 'turn failed')
    try {
      // A log that takes nothing more is left as it is: the server closes what stands open there.
      await writer.drain().catch(reason => log.info({ reason: failureOf(reason).message }, 'the log took no more'))
      while (!writer.isSuperseded()) {
        const { epoch, appended } = writer.position()
        const digest = digestOf(writer.messages())
        const answer = await server.finish({ turn: id, epoch, outcome, n: appended, digest }, leaving)
        // failpoint: finish answered (id, epoch, answer)
        if (answer !== 'gap') return account.end(outcome.status, { answer }, outcome.error)
        await writer.reopen()
      }
      log.info({}, 'turn lost at its end')
      account.end('lost')
    } catch (error) {
      log.warn({ err: error }, 'turn could not be finished here')
      account.end('lost')
    } finally {
      writer.stop(turnOver('it has ended'))
    }
  }
}

async function handle(agent: AgentDefinition, turn: Turn, writer: TurnWriter): Promise<void> {
  const running: unknown = agent.run(turn)
  if (isAsyncIterable(running)) {
    for await (const update of running) await writer.write(update)
    return
  }
  const returned = await running
  if (returned === undefined) return
  throw new RivuletError(
    'bad_call',
    `Agent ${agent.name} returned ${typeof returned}: what it has to say it yields or sends, and returns nothing`,
  )
}

/** Its updates are checked as they come. */
function isAsyncIterable(value: unknown): value is AsyncIterable<Update> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}

function finished(outcome: FinishBody['outcome']): Ending {
  return { how: 'finished', outcome }
}

function overBy({ how }: Ending): RivuletError {
  return turnOver(how === 'finished' ? 'it has ended' : `it was ${how}`)
}

function tooLate(): RivuletError {
  return new RivuletError('deadline_exceeded', 'The turn did not end in time')
}

function failed(error: unknown): Ending {
  const failure: Failure = failureOf(error)
  return finished({ status: 'failed', stopReason: 'error', error: failure })
}
