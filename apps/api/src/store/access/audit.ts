/**
 * The audit log: who changed what, when, and from where. An entry is inserted in the transaction of its change, so neither is without the other.
 * Readers get the newest entries first, in the order of the feed: an entry that is committed late is never behind a page that was read.
 */
import type { AuditEntry, ListAudit } from '@rivulet/contract/audit'
import { type Cursor, epochOf, formatCursor, seqOf } from '@rivulet/protocol'
import { and, desc, eq, type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { msAgo } from '../connection/moments.ts'
import { everyTenant, isOf, type Tenant } from '../connection/tenant.ts'
import { horizon } from '../feed/read-feed.ts'
import { audit } from '../schema.ts'

/** The caller of a change. */
export type AuditCaller = Pick<AuditEntry, 'via' | 'key' | 'subject' | 'address'>
export type AuditedChange = Pick<AuditEntry, 'action' | 'target'> & { details?: AuditEntry['details'] }

/** Inserts the entry of a change, in the transaction of the change. */
export type Auditor = (tx: Transaction, tenant: Tenant, change: AuditedChange) => Promise<void>
/** The same for one change that is known already. */
export type AuditNote = (tx: Transaction) => Promise<void>

export async function insertAudit(tx: Transaction, tenant: Tenant, caller: AuditCaller, change: AuditedChange): Promise<void> {
  await tx.insert(audit).values({ tenant, ...caller, details: {}, ...change })
}

/** A page of at most `limit` entries. @param tenant `everyTenant` reads the entries of all, and those of the installation */
export async function listAudit(db: Database, tenant: Tenant, { tenant: of, limit, cursor, ...filter }: ListAudit): Promise<AuditEntry[]> {
  const { action, target, key } = filter
  const rows = await db
    .select()
    .from(audit)
    .where(
      and(
        isOf(tenant, audit.tenant),
        sql`${audit.xid} < ${horizon}`,
        cursor === undefined ? undefined : isBefore(cursor),
        of === undefined ? undefined : eq(audit.tenant, of),
        action === undefined ? undefined : eq(audit.action, action),
        target === undefined ? undefined : eq(audit.target, target),
        key === undefined ? undefined : eq(audit.key, key),
      ),
    )
    .orderBy(desc(audit.xid), desc(audit.seq))
    .limit(limit)
  return rows.map(toEntry)
}

/** Returns whether there may be more. */
export async function forgetAudit(db: Database, { keptMs, limit }: { keptMs: number; limit: number }): Promise<boolean> {
  const { rowCount } = await db.execute(sql`
    delete from audit where (xid, seq) in (select xid, seq from audit where at < ${msAgo(keptMs)} order by at limit ${limit})`)
  return (rowCount ?? 0) >= limit
}

function isBefore(place: Cursor): SQL {
  return sql`(${audit.xid}, ${audit.seq}) < (${epochOf(place)}::bigint, ${seqOf(place)}::bigint)`
}

function toEntry({ xid, seq, tenant, at, action, target, via, key, subject, address, details }: typeof audit.$inferSelect): AuditEntry {
  return {
    ...{ id: formatCursor(xid, seq), at: at.toISOString() },
    ...(tenant !== everyTenant && { tenant }),
    ...{ action, target, via },
    ...(key !== null && { key }),
    ...(subject !== null && { subject }),
    ...(address !== null && { address }),
    details,
  }
}
