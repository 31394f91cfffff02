/** Columns that many tables have. */
import { text, timestamp } from 'drizzle-orm/pg-core'
import { defaultTenant } from '../connection/tenant.ts'

export const time = () => timestamp({ withTimezone: true, precision: 3 })

/** The tenant of the row. The default is for rows from before there were tenants; row-level security rejects it for other tenants. */
export const tenant = () => text().notNull().default(defaultTenant)
