/** Accepts a turn for the dialects of other protocols: of a new task, of a task that is there, or of a fork of it. */

import type { CreateTask } from '@rivulet/contract/tasks'
import type { IfBusy } from '@rivulet/contract/turns'
import { type Content, type Json, type JsonObject, RivuletError, type Task, type TaskId, type Turn } from '@rivulet/protocol'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import { mayUse, type Principal } from '../../access/principal.ts'
import type { Transaction } from '../../store/connection/database.ts'
import { lastTurnNumber } from '../../store/reads/turns.ts'
import { toTask, toTurn } from '../../store/rows.ts'
import type { AcceptedTurn as CommittedTurn } from '../../store/tasks/accept/create-task.ts'
import { createTurn, declineWaits } from '../../store/tasks/accept/create-turn.ts'
import { moveToAgent } from '../../store/tasks/change-history.ts'
import { forkTask } from '../../store/tasks/fork-task.ts'
import { lockTask } from '../../store/tasks/held-task.ts'
import type { Services } from '../services.ts'
import { type AcceptedWork, createAcceptWork } from './accept-work.ts'
import { requireFiles } from './files/file-references.ts'
import { markReplay } from './idempotent.ts'

/** `after`: the turn that this one follows. If the task has gone on since, the turn is that of a fork. */
export type WantedTurn =
  | { of: 'new task'; body: CreateTask; inputMetadata?: JsonObject }
  | {
      of: 'task'
      task: TaskId
      agent: string
      after?: number | undefined
      input: Content | Content[]
      inputMetadata?: JsonObject
      params?: Json | undefined
      /** Default: the turn waits for those before it. */
      ifBusy?: IfBusy
      /** A conversation that no agent has responded in becomes one of this agent. */
      movesAgent?: boolean
      /** The input closes what the task asks people for, and is a turn of its own; with `ifBusy: 'decline'` it would join the turn that asked. */
      declines?: boolean
    }

/** `dispatch` sends the turn to the queue: after its viewer is there, or at once. */
export type AcceptedTurn = { task: Task; turn: Turn; dispatch: () => void }

export function createAcceptTurn(services: Services, log: FastifyBaseLogger) {
  const { limits } = services.config
  const { requireShare, accept: acceptWork, commitTask, commitTurn } = createAcceptWork(services, log)
  return { requireShare, accept }

  async function accept(request: FastifyRequest, reply: FastifyReply, wanted: WantedTurn): Promise<AcceptedTurn> {
    await requireFiles(services.databaseFor, request.principal, wanted.of === 'new task' ? wanted.body : wanted, true)
    const { response, dispatch } = await acceptWork(request, traceparent => commit(request, wanted, traceparent), 'held')
    markReplay(reply, response.replayed)
    // Entities are JSON by construction, and so are those that were stored under a key.
    const { task, turn } = response.body as unknown as { task: Task; turn: Turn }
    return { task, turn, dispatch }
  }

  function commit(request: FastifyRequest, wanted: WantedTurn, traceparent: string): Promise<AcceptedWork> {
    if (wanted.of === 'new task') return commitTask(request, wanted.body, traceparent, wanted.inputMetadata)
    return commitTurn(
      request,
      tx => continueTask(tx, request.principal, wanted, traceparent),
      ({ task, turn }) => ({ status: 200, body: { task: toTask(task), turn: toTurn(turn) } as Json }),
      wanted.task,
    )
  }

  async function continueTask(
    tx: Transaction,
    principal: Principal,
    {
      task,
      agent,
      after,
      input,
      inputMetadata,
      params,
      ifBusy = 'queue',
      declines = false,
      movesAgent = false,
    }: Extract<WantedTurn, { of: 'task' }>,
    traceparent: string,
  ): Promise<CommittedTurn> {
    const held = await lockTask(tx, principal, task)
    const isMoved = held.agent !== agent && movesAgent && mayUse(principal, agent) && (await moveToAgent(tx, held, agent))
    if (held.agent !== agent && !isMoved) throw new RivuletError('bad_request', 'The conversation is with another agent')
    const last = await lastTurnNumber(tx, task)
    if (after !== undefined && after > last) throw new RivuletError('not_found', 'No such turn in this task')
    const given = { input, ...(params !== undefined && { params }) }
    if (after !== undefined && after !== last) return forkTask(tx, principal, task, { ...given, after }, limits.queuedTurns, traceparent)
    const declined = declines ? await declineWaits(tx, task) : null
    const accepted = await createTurn(tx, principal, task, { ...given, ifBusy }, limits.queuedTurns, traceparent, inputMetadata)
    return { ...accepted, ...(declined && { declined }) }
  }
}
