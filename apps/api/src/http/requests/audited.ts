/** The audit log's view of a request: its caller, and the entries of the changes that it makes. */
import type { AuditAction } from '@rivulet/contract/scopes'
import type { TaskId, Turn } from '@rivulet/protocol'
import type { FastifyRequest } from 'fastify'
import type { Principal } from '../../access/principal.ts'
import { type AuditCaller, type AuditedChange, type AuditNote, type Auditor, insertAudit } from '../../store/access/audit.ts'
import type { Database, Transaction } from '../../store/connection/database.ts'
import type { Accepted, AcceptedTurn } from '../../store/tasks/accept/create-task.ts'
import type { Services } from '../services.ts'

/** Without an action, it is the usual one of the route. */
type Change = Omit<AuditedChange, 'action'> & { action?: AuditAction }

export function createAudit({ metrics, refusals }: Pick<Services, 'metrics' | 'refusals'>) {
  return { auditor, note, audited }

  function auditor(request: FastifyRequest): Auditor {
    return async (tx, tenant, change) => {
      if (refusals.isRepeated(tenant, callerOf(request), change)) return
      await insertAudit(tx, tenant, callerOf(request), change)
      metrics.auditEntries.inc({ action: change.action })
    }
  }

  function note(request: FastifyRequest, change: Change): AuditNote {
    const { action = usualAction(request), ...rest } = change
    return tx => auditor(request)(tx, request.principal.tenant, { action, ...rest })
  }

  /** Makes a change and inserts its entry, in one transaction. */
  function audited<T>(db: Database, request: FastifyRequest, change: Change, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return db.transaction(async tx => {
      const result = await work(tx)
      await note(request, change)(tx)
      return result
    })
  }
}

function usualAction({ routeOptions: { config, method, url } }: FastifyRequest): AuditAction {
  const [action] = [config.contract?.audited ?? []].flat()
  if (!action) throw new Error(`The contract names no entry of the audit log for ${method} ${url}`)
  return action
}

/** What new work changes besides: the conversation that it forks or cuts, and the questions that it declines. */
export function changesBy({ task, turn, isNew, isQueued, ...work }: Accepted | AcceptedTurn): AuditedChange[] {
  if (isNew && task.parent !== null) return [{ action: 'task.forked', target: task.parent, details: { fork: task.id } }]
  const declined = 'declined' in work ? work.declined : undefined
  const from = isQueued ? turn.discardsFrom : null
  return [
    ...(from === null ? [] : [{ action: 'task.rewound' as const, target: task.id, details: { discarded: from } }]),
    ...(declined ? [{ action: 'wait.answered' as const, target: task.id, details: { turn: declined.number, action: 'decline' } }] : []),
  ]
}

/** For the routes that cancel one turn. */
export function turnCancel({ task, number }: Pick<Turn, 'task' | 'number'>) {
  return { action: 'task.canceled', target: task, details: { turn: number } } as const
}

/** For the routes that cancel what a task does, and give it something else to do. */
export function interruption(task: TaskId) {
  return { action: 'task.canceled', target: task, details: { scope: 'interrupt' } } as const
}

/** Also of a request that the guard has refused before it knew its caller. */
export function callerOf({ principal, ip: address }: Pick<FastifyRequest, 'ip'> & { principal?: Principal }): AuditCaller {
  if (!principal) return { via: 'none', address }
  const { key, token } = principal
  const via = token ? 'token' : key === null ? 'open' : 'key'
  return { via, ...(key !== null && { key }), ...(token?.subject && { subject: token.subject }), address }
}
