/** An entry of the audit log: a change, an export, or requests that were refused, and the caller. It has no content of tasks. */
import { z } from 'zod'
import { jsonObjectSchema } from '../values/json-schema.ts'
import { nameSchema } from './ids.ts'

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

export const auditEntrySchema = z.object({
  id: z.string(),
  at: z.iso.datetime(),
  /** Absent for a change of the installation: a key for all tenants. */
  tenant: nameSchema.optional(),
  action: auditActionSchema,
  /** The id of what changed: a key, a task, a file, a schedule, a webhook; the name of an agent; the code of a refusal. */
  target: z.string(),
  /** How the caller proved itself. `open`: the API requires no key. `database`: a command on the database itself. `none`: it did not. */
  via: z.enum(['key', 'token', 'open', 'database', 'none']),
  /** The id of the key, also of the key that a token was created with. */
  key: z.string().optional(),
  /** Of the token. */
  subject: z.string().optional(),
  /** The IP address that the request came from. */
  address: z.string().optional(),
  details: jsonObjectSchema,
})

export type AuditAction = z.output<typeof auditActionSchema>
export type AuditEntry = z.output<typeof auditEntrySchema>
