/**
 * Where a task stands as far as it is committed: the task, its latest turns and its newest messages, of one moment and in one round trip; only
 * where there are more messages than a page holds, the older ones are asked for after it.
 */
import { type Message, maxPageSize, type Task, type Turn } from '@rivulet/protocol'
import { and, desc, eq, lt } from 'drizzle-orm'
import type { Database } from './database.ts'
import { fromJsonRow, type JsonRow } from './json-rows.ts'
import { toMessage, toTask, toTurn } from './rows.ts'
import { messages, tasks, turns } from './schema.ts'
import { everyTenant, isOf, type Tenant, taskNotFound } from './tenant.ts'

/** Turns and messages ascending; of messages, without holes, as many of the newest as fit. */
export type Standing = { task: Task; turns: Turn[]; messages: Message[] }

export async function readStanding(db: Database, tenant: Tenant, task: string, maxBytes: number): Promise<Standing> {
  const { rows } = await db.$client.query({ name: 'standing', text: standingText, values: [task, tenant, maxBytes] })
  const [found] = rows as { task: JsonRow; turns: JsonRow[]; messages: JsonRow[] }[]
  if (!found) throw taskNotFound()
  const newest = found.messages.map(row => toMessage(fromJsonRow(messages, row)))
  return {
    task: toTask(fromJsonRow(tasks, found.task)),
    turns: found.turns.map(row => toTurn(fromJsonRow(turns, row))),
    messages: await takeFitting(newest, maxBytes, before => olderMessages(db, tenant, task, before)),
  }
}

/**
 * $1 task, $2 tenant, $3 bytes. Turns ascending, messages descending.
 *
 * Skips messages that cannot fit, by lower bounds of what they take. First by their stored size, which nothing has to be unpacked for: a third of
 * it at most, because a character takes up to three bytes. Then, for what compresses well, by their length; content is stored as
 * `JSON.stringify` wrote it.
 */
const standingText = `
select to_json(tasks) as task,
  (select coalesce(json_agg(to_json(latest) order by number), '[]')
    from (select * from turns where turns.task = tasks.id order by number desc limit ${maxPageSize}) as latest) as turns,
  (select coalesce(json_agg(to_json(newest) order by index desc), '[]')
    from (
      select *, sum(length(content::text)) over (order by index desc) as length
      from (
        select *, sum(pg_column_size(content) / 3) over (order by index desc) as stored
        from (select * from messages where messages.task = tasks.id order by index desc limit ${maxPageSize}) as page
      ) as sized
      where stored <= $3
    ) as newest
    where length <= $3) as messages
from tasks where id = $1 and $2 in (tenant, '${everyTenant}')`

async function olderMessages(db: Database, tenant: Tenant, task: string, before: number): Promise<Message[]> {
  const rows = await db
    .select()
    .from(messages)
    .where(and(eq(messages.task, task), isOf(tenant, messages.tenant), lt(messages.index, before)))
    .orderBy(desc(messages.index))
    .limit(maxPageSize)
  return rows.map(toMessage)
}

async function takeFitting(newest: Message[], maxBytes: number, older: (before: number) => Promise<Message[]>): Promise<Message[]> {
  const taken: Message[] = []
  let bytes = 0
  for (let page = newest; ; ) {
    for (const message of page) {
      bytes += JSON.stringify(message).length
      if (bytes > maxBytes) return taken.reverse()
      taken.push(message)
    }
    const last = page.at(-1)
    if (!last || page.length < maxPageSize) return taken.reverse()
    page = await older(last.index)
  }
}
