/** The turns that failed lately, grouped by what looks like the same reason. */
import type { ErrorGroup } from '@rivulet/contract/agents'
import { sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { readNowMs } from '../connection/moments.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { turns } from '../schema.ts'
import { firstIdAt } from './activity.ts'

const maxGroups = 100
const maxMessage = 300
/** A turn that was queued longer before is not found: ids of turns grow with time, so only recent rows are read. */
const longestTurnMs = 24 * 3_600_000

/** What differs from one failure to the next: ids, hexadecimal and decimal numbers. */
const varying = '[0-9a-f]{8}-[0-9a-f-]{27}|0x[0-9a-f]+|[0-9a-f]{16,}|[0-9]+'

/** Its first line: a stack differs with every release. */
const message = sql.raw(`left(split_part(coalesce(turns.error_detail, turns.error->>'message'), chr(10), 1), ${maxMessage})`)

/** The same for failures of an agent that look alike. For statements that have the tables `turns` and `tasks`. */
export const fingerprint = sql`md5(tasks.agent || ' ' || (turns.error->>'code') || ' ' || regexp_replace(lower(${message}), ${varying}, '#', 'g'))`

export async function groupErrors(db: Database, tenant: Tenant, minutes: number): Promise<ErrorGroup[]> {
  const from = (await readNowMs(db)) - minutes * 60_000
  const { rows } = await db.execute<Row>(sql`
    select fingerprint, agent, code, count(*) as count, count(distinct task) as tasks,
      (array_agg(message order by at desc))[1] as message, min(at) as first_at, max(at) as last_at, (array_agg(task order by at desc))[1] as last_task
    from (
      select turns.task, tasks.agent, turns.error->>'code' as code, turns.finished_at as at, ${message} as message,
        ${fingerprint} as fingerprint
      from turns join tasks on tasks.id = turns.task
      where turns.status = 'failed' and turns.error is not null and turns.id >= ${firstIdAt(from - longestTurnMs)}
        and turns.finished_at >= ${new Date(from)} and ${isOf(tenant, turns.tenant) ?? sql`true`}
    ) as failed
    group by fingerprint, agent, code order by count(*) desc, max(at) desc limit ${maxGroups}`)
  return rows.map(({ first_at: firstAt, last_at: lastAt, last_task: lastTask, count, tasks, ...row }) => ({
    ...{ fingerprint: row.fingerprint, agent: row.agent, code: row.code, message: row.message, count: Number(count), tasks: Number(tasks) },
    ...{ firstAt: new Date(firstAt).toISOString(), lastAt: new Date(lastAt).toISOString(), lastTask },
  }))
}

type Row = Pick<ErrorGroup, 'fingerprint' | 'agent' | 'code' | 'message'> &
  Record<'count' | 'tasks', string | number> &
  Record<'first_at' | 'last_at', string | Date> & { last_task: string }
