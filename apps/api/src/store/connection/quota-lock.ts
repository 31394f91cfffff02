/** Requests of a tenant that count towards a quota wait for each other until their transactions end, so together they do not exceed it. */
import { sql } from 'drizzle-orm'
import type { Transaction } from './database.ts'
import type { Tenant } from './tenant.ts'

/** The class of advisory locks by tenant; the locks of migrations and of the reconciler have one number. */
const lockClass = 7_233_485

export async function lockQuota(
  tx: Pick<Transaction, 'execute'>,
  tenant: Tenant,
  quota: 'files' | 'keys' | 'schedules' | 'turns' | 'webhooks',
): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(${lockClass}, hashtext(${`${quota} ${tenant}`}))`)
}
