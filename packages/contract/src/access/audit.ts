/** The audit log of a tenant: its changes, exports and refused requests, with their callers. It has no content of tasks. */
import { jsonObjectSchema, nameSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { route } from '../route.ts'
import { pageLimit, place } from '../values.ts'
import { auditActionSchema } from './scopes.ts'

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

export const listAuditQuery = z.strictObject({
  action: auditActionSchema.optional(),
  target: z.string().min(1).max(200).optional(),
  key: z.string().min(1).max(64).optional(),
  tenant: nameSchema.optional(),
  limit: pageLimit,
  cursor: place.optional(),
})

export const auditPage = z.object({ data: z.array(auditEntrySchema), nextCursor: z.string().nullable() })

export const listAudit = route('GET /v1/audit', {
  ...{ tag: 'keys', scope: 'admin' },
  query: listAuditQuery,
  returns: { 200: auditPage },
  errors: ['overloaded'],
  doc: 'Lists the changes of a tenant and their callers, the newest first',
})

export type AuditEntry = z.output<typeof auditEntrySchema>

export type ListAudit = z.output<typeof listAuditQuery>
