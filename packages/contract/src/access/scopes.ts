/** The words in which a row names its callers, and its entry of the audit log. */
import { z } from 'zod'

/** The permissions of a key. `admin` includes all but `worker`, which is for `/internal` alone; `metrics` is for a scraper. */
export const scopes = ['tasks:read', 'tasks:write', 'admin', 'metrics', 'worker'] as const

export const scopeSchema = z.enum(scopes)

/** What a token permits on its task. */
export const tokenRightSchema = z.enum(['read', 'send', 'cancel', 'answer', 'params', 'rewind'])

export const auditActions = [
  'key.created',
  'key.rotated',
  'key.revoked',
  'token.created',
  'token.revoked',
  'task.canceled',
  'task.changed',
  'task.forked',
  'task.rewound',
  'task.exported',
  'task.deleted',
  'state.set',
  'store.set',
  'store.removed',
  'signal.sent',
  'file.created',
  'file.deleted',
  'schedule.created',
  'schedule.paused',
  'schedule.resumed',
  'schedule.triggered',
  'schedule.deleted',
  'webhook.created',
  'webhook.changed',
  'webhook.retried',
  'webhook.deleted',
  'secrets.set',
  'secrets.removed',
  'wait.answered',
  'limits.set',
  'limits.removed',
  'agent.paused',
  'agent.resumed',
  'agent.removed',
  'request.refused',
] as const

export const auditActionSchema = z.enum(auditActions)

export type Scope = z.output<typeof scopeSchema>

export type TokenRight = z.output<typeof tokenRightSchema>

export type AuditAction = z.output<typeof auditActionSchema>
