/**
 * The revocations of a task's tokens: those whose session began before a moment, of one subject or all. Postgres' clock gives both moments, so
 * the clock of an API process never decides whether a token was created before a revocation.
 */
import { maxTokenSeconds, type TaskId } from '@rivulet/protocol'
import { lt, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { msAgo } from '../connection/moments.ts'
import { type Readable, taskNotFound } from '../connection/tenant.ts'
import { tasks, tokenRevocations } from '../schema.ts'
import { isTask } from '../tasks/held-task.ts'

/** Whose tokens: of one task, and of one subject; null for tokens that have none. */
export type TokenHolder = { task: TaskId; subject: string | null }

/** Stands for all subjects of a task: none is an empty text. */
const allSubjects = ''

/** Now, by Postgres' clock, in milliseconds since 1970: when a session of a token of this task begins. */
export async function beginTokenSession(db: Database | Transaction, caller: Readable, task: TaskId): Promise<number> {
  const [row] = await db
    .select({ now: sql<number>`extract(epoch from now()::timestamptz(3))::float8 * 1000` })
    .from(tasks)
    .where(isTask(caller, task))
  if (!row) throw taskNotFound()
  return Math.round(row.now)
}

/** @param subject null: of all tokens of the task. */
export async function revokeTokens(db: Database | Transaction, caller: Readable, { task, subject }: TokenHolder): Promise<void> {
  const { rowCount } = await db.execute(sql`
    insert into token_revocations (task, tenant, subject, revoked_at)
    select id, tenant, ${subject ?? allSubjects}, clock_timestamp() from tasks where ${isTask(caller, task)}
    on conflict (task, subject) do update set revoked_at = greatest(token_revocations.revoked_at, excluded.revoked_at)
  `)
  if (rowCount === 0) throw taskNotFound()
}

/** Up to when, for each of these, sessions were revoked, in milliseconds since 1970; null: none was. */
export async function revocationsOf(db: Database, holders: readonly TokenHolder[]): Promise<(number | null)[]> {
  const [held, subjects] = [holders.map(({ task }) => task), holders.map(({ subject }) => subject ?? allSubjects)]
  const { rows } = await db.execute<{ until: number | null }>(sql`
    select (
      select extract(epoch from max(revoked_at))::float8 * 1000 from token_revocations own
      where own.task = held.task and own.subject in (${allSubjects}, held.subject)
    ) as until
    from unnest(${sql.param(held)}::uuid[], ${sql.param(subjects)}::text[]) with ordinality as held (task, subject, place)
    order by held.place
  `)
  return rows.map(({ until }) => until && Math.round(until))
}

/** A token lives for an hour at most, by the clock of an API process: one that is wrong by less than another hour brings none back. */
const keptMs = 2 * maxTokenSeconds * 1_000

export async function forgetRevocations(db: Database): Promise<void> {
  await db.delete(tokenRevocations).where(lt(tokenRevocations.revokedAt, msAgo(keptMs)))
}
