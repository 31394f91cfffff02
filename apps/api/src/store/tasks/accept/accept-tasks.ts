/**
 * Accepts a task in one statement, if it starts at once and has no name, history, secrets or files: without a name, it cannot exist yet. Tasks of one tenant
 * that arrive together share the statement, and the response under an Idempotency-Key is committed with its task. For every other task, `accept` returns
 * null, and its caller uses `createTask`.
 */
import { randomUUID } from 'node:crypto'
import type { CreateTask } from '@rivulet/contract/tasks'
import type { Json } from '@rivulet/protocol'
import type { IdempotencyKey, StoredResponse } from '../../access/idempotency.ts'
import { batcherPerTenant, createBatcher } from '../../connection/batcher.ts'
import type { DatabaseHandle } from '../../connection/database.ts'
import { askTwice } from '../../connection/database-errors.ts'
import { toJsonRow } from '../../connection/json-rows.ts'
import type { Tenant } from '../../connection/tenant.ts'
import { filesIn } from '../../files/file-references.ts'
import { type TaskRow, type TurnRow, toTask, toTurn } from '../../rows.ts'
import { tasks, turns } from '../../schema.ts'
import type { Intent } from '../outbox.ts'
import { type AcceptedTurn, type Inserted, insertTasks, newTask, type UntimedTask, type WantedTask } from './create-task.ts'
import { newTurn, type UntimedTurn } from './queue-turn.ts'
import { timesAt } from './turn-times.ts'

/** Of one statement. */
const mostTasks = 100

/** `intent`: to send to the queue at once; null where the relay has to find it in the outbox. */
type AcceptedTask = { accepted: AcceptedTurn; response: StoredResponse; intent: Intent | null }

/** `rank`: of a turn that gets its share of the workers at once, because none waits for one. Null: it has to be picked. */
type AcceptOptions = { traceparent?: string | undefined; rank: number | null }

export type TaskAcceptance = ReturnType<typeof createTaskAcceptance>

export function createTaskAcceptance(databaseFor: DatabaseHandle['databaseFor']) {
  const batcherOf = batcherPerTenant<WantedTask, Inserted | null>(tenant => createBatcher(mostTasks, wanted => insert(tenant, wanted)))
  return { accept }

  async function accept(
    tenant: Tenant,
    request: CreateTask,
    key: IdempotencyKey | null,
    { traceparent, rank }: AcceptOptions = { rank: 1 },
  ): Promise<AcceptedTask | null> {
    const { name, history, secrets, start } = request
    if (name !== undefined || history !== undefined || secrets !== undefined || !start) return null
    if (filesIn([request.input].flat()).length > 0) return null
    const accepting = () => acceptOnce(tenant, request, key, { traceparent, rank })
    // Under a key it is safe to ask twice: each try has ids of its own, so the second cannot take the rows of the first for its own.
    return key ? askTwice(accepting) : accepting()
  }

  async function acceptOnce(
    tenant: Tenant,
    request: CreateTask,
    key: IdempotencyKey | null,
    { traceparent, rank }: AcceptOptions,
  ): Promise<AcceptedTask | null> {
    const { input, delayMs } = request
    const sent = rank !== null && delayMs === 0 ? 'direct' : null
    const untimed = newTask(tenant, request)
    const untimedTurn = {
      ...newTurn(untimed, 1, { ...(input && { input }), traceparent }),
      isDelayed: delayMs > 0,
      dispatch: 1,
      sent,
    } as const
    const kept = key && { ...key, status: 201, body: bodyAtMoment(untimed, untimedTurn) }
    const wanted: WantedTask = { task: toJsonRow(tasks, untimed), turn: toJsonRow(turns, untimedTurn), delayMs, ...(kept && { key: kept }) }
    // One under a key goes alone, because it may have to wait for another request under it.
    const inserted = key ? (await insert(tenant, [wanted]))[0] : await batcherOf(tenant)(wanted)
    if (!inserted) return null
    const { task, turn } = timed(untimed, untimedTurn, { delayMs, at: inserted.at })
    const response: StoredResponse = { status: 201, body: { task: toTask(task), turn: toTurn(turn) } as Json }
    const { priority } = task
    const { number, attempt, dispatch, traceparent: trace } = turn
    const about = {
      turnId: turn.id,
      task: task.id,
      number,
      agent: inserted.agent,
      attempt,
      dispatch,
      delayMs,
      priority,
      traceparent: trace,
    }
    const intent = sent === null || rank === null ? null : { id: inserted.id, rank, ...about }
    return { accepted: { task, turn, isNew: true, isQueued: true }, response, intent }
  }

  function insert(tenant: Tenant, wanted: readonly WantedTask[]): Promise<(Inserted | null)[]> {
    return insertTasks(databaseFor(tenant), wanted, momentMark)
  }
}

/** As `insertTasks` stores them. */
function timed(task: UntimedTask, turn: UntimedTurn, { delayMs, at }: { delayMs: number; at: Date }): { task: TaskRow; turn: TurnRow } {
  return { task: { ...task, createdAt: at, updatedAt: at }, turn: { ...turn, ...timesAt(at, delayMs, task.timeoutMs) } }
}

/** Stands in a stored response for the moment of its commit, which Postgres puts in. Random: no caller can have it in what it sends. */
const momentMark = randomUUID()

function bodyAtMoment(task: UntimedTask, turn: UntimedTurn): Json {
  const rows = timed(task, turn, { delayMs: 0, at: new Date(0) })
  const times = { createdAt: momentMark, updatedAt: momentMark }
  return { task: { ...toTask(rows.task), ...times }, turn: { ...toTurn(rows.turn), queuedAt: momentMark } } as Json
}
