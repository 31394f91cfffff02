/** Sums of the rows of usage. Each row is read, so that no counter can drift from the bill. */

import type { UsageGrouping, UsageQuery, UsageReport } from '@rivulet/contract/usage'
import { maxUsageGroups, type Usage } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { msAgo } from '../connection/moments.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { usage } from '../schema.ts'

/** The counts that a report has; an agent may count more. */
const names = ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens', 'reasoningTokens', 'totalTokens'] as const

const groups: Record<UsageGrouping, string> = {
  day: `to_char(at at time zone 'UTC', 'YYYY-MM-DD')`,
  agent: 'agent',
  model: 'model',
  key: 'concurrency_key',
  tenant: 'tenant',
}

const sums = `count(*)::int as responses, count(distinct turn)::int as turns, sum(tokens) as tokens, sum(cost)::float8 as cost,
  (count(*) - count(cost))::int as unpriced, ${names.map(name => `sum((usage->>'${name}')::float8) as "${name}"`).join(', ')}`

type Sums = Record<'responses' | 'turns' | 'unpriced', number> & Record<'tokens' | 'cost' | (typeof names)[number], number | null>

/** @param tenant every tenant, for a report about all of them */
export async function readUsage(db: Database, tenant: Tenant, { by, from, to }: UsageQuery): Promise<UsageReport> {
  const own = isOf(tenant, usage.tenant) ?? sql`true`
  const order = by === 'day' ? '"group"' : 'tokens desc, "group"'
  // In one statement, so that the groups and the total are of one moment.
  const { rows } = await db.execute<Sums & { group: string | null; isTotal: boolean }>(sql`
    with own as (select * from usage where ${own} and at >= ${from} and at < ${to}),
    found as (select ${sql.raw(groups[by])} as "group", ${sql.raw(sums)} from own group by 1 order by ${sql.raw(order)} limit ${maxUsageGroups})
    select false as "isTotal", found.* from found union all select true, null, ${sql.raw(sums)} from own`)
  const data = rows.filter(({ isTotal }) => !isTotal)
  const [total] = rows.filter(({ isTotal }) => isTotal)
  if (!total) throw new Error('A report of usage has a total')
  return {
    ...{ by, from: from.toISOString(), to: to.toISOString() },
    data: data.map(row => ({ group: row.group, ...toSums(row) })),
    total: toSums(total),
  }
}

function toSums({ responses, turns, unpriced, tokens, cost, ...counts }: Sums): UsageReport['total'] {
  const counted = names.flatMap(name => (counts[name] === null ? [] : [[name, counts[name]] as const]))
  return { usage: Object.fromEntries(counted) satisfies Usage, tokens: tokens ?? 0, cost, unpriced, responses, turns }
}

/** Returns whether there may be more. */
export async function forgetUsage(db: Database, { keptMs, limit }: { keptMs: number; limit: number }): Promise<boolean> {
  const { rowCount } = await db.execute(sql`
    delete from usage where (turn, id) in (select turn, id from usage where at < ${msAgo(keptMs)} order by at limit ${limit})`)
  return (rowCount ?? 0) >= limit
}
