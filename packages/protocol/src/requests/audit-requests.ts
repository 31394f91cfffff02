/** The request that reads the audit log. */
import { z } from 'zod'
import { auditActionSchema, auditEntrySchema } from '../entities/audit-entry.ts'
import { nameSchema } from '../entities/ids.ts'
import { place } from './feed-requests.ts'
import { pageLimit } from './requests.ts'

export const listAuditQuery = z.strictObject({
  action: auditActionSchema.optional(),
  target: z.string().min(1).max(200).optional(),
  key: z.string().min(1).max(64).optional(),
  tenant: nameSchema.optional(),
  limit: pageLimit,
  cursor: place.optional(),
})

export const auditPage = z.object({ data: z.array(auditEntrySchema), nextCursor: z.string().nullable() })

export type ListAudit = z.output<typeof listAuditQuery>
