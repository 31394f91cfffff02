/**
 * The end of a turn in this process: the ways in which it can end, and the calls that tell the server.
 *
 * A turn that is finished is reported until the server has stored it, or another worker has it. If the server finds a gap in the log, the writer
 * first writes the whole turn again under a new epoch. Nothing here decides how a turn ends.
 */

import type { FinishBody } from '@rivulet/contract/internal'
import { digestOf, type RivuletError, type TurnId, usageRecordsOf } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import { fullFailureOf, fullTextOf } from '../failure.ts'
import type { TurnCalls } from '../server-calls.ts'
import type { TurnWriter } from '../writer/turn-writer.ts'
import type { TurnAccount } from './turn-account.ts'
import { turnOver } from './turn-over.ts'
import type { UsageNotes } from './usage-notes.ts'

export type Ending = { how: 'finished'; outcome: FinishBody['outcome'] } | { how: 'lost' } | { how: 'released' } | { how: 'parked' }

type TurnEndDeps = {
  turnId: TurnId
  claimId: string
  server: TurnCalls
  writer: TurnWriter
  account: TurnAccount
  used: UsageNotes
  leaving: AbortSignal
}

export async function settleTurn(ending: Ending, deps: TurnEndDeps): Promise<void> {
  const { turnId, claimId, server, writer, account, used, leaving } = deps
  if (ending.how === 'finished') return finish(ending.outcome, deps)
  // No more of the log is written, and none of it may be read.
  if (ending.how !== 'parked') used.send(usageRecordsOf(writer.messages()))
  if (ending.how === 'released') {
    await used.settled()
    await server.release({ turnId, epoch: writer.position().epoch, claimId }, leaving)
  }
  account.log.info({}, `turn ${ending.how}`)
  account.end(ending.how)
}

async function finish(outcome: FinishBody['outcome'], deps: TurnEndDeps): Promise<void> {
  const { turnId, claimId, server, writer, account, used, leaving } = deps
  const { log } = account
  const { error, detail } = outcome
  if (error) log.warn({ error: { ...error, ...(detail !== undefined && { detail }) } }, 'turn failed')
  try {
    // A log that takes nothing more is left as it is: the server closes what stands open there.
    await used.settled()
    await writer.drain().catch(reason => log.info({ reason: fullTextOf(reason) }, 'the log rejected the rest of the output'))
    while (!writer.isSuperseded()) {
      const { epoch, appended } = writer.position()
      const digest = digestOf(writer.messages())
      const result = await server.finish({ turnId, epoch, claimId, outcome, n: appended, digest }, leaving)
      if (failpoint) await failpoint('finish answered', turnId, epoch, result)
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

export function failed(error: unknown, secrets?: Readonly<Record<string, string>>): Ending {
  const { detail, ...failure } = fullFailureOf(error, secrets)
  return { how: 'finished', outcome: { status: 'failed', stopReason: 'error', error: failure, ...(detail !== undefined && { detail }) } }
}

export function overBy({ how }: Ending): RivuletError {
  return turnOver(how === 'finished' ? 'ended' : how)
}
