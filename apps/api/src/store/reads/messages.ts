/** Reads committed messages, by index. */
import type { ListMessages } from '@rivulet/contract/messages'
import type { Message, TaskId } from '@rivulet/protocol'
import { and, asc, eq } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { fromJsonRow } from '../connection/json-rows.ts'
import { everyTenant, isOf, type Tenant } from '../connection/tenant.ts'
import { toMessage } from '../rows.ts'
import { messages } from '../schema.ts'
import { bytesOf, fitKeys, rowsToSend } from './byte-budget.ts'
import { type Page, type PageRow, pageOf } from './pages.ts'

/** By index. */
export async function listMessages(
  db: Database,
  tenant: Tenant,
  task: TaskId,
  { after = -1, limit, turn: turnNumber }: ListMessages,
  maxBytes: number,
  which: 'all' | 'kept' = 'all',
): Promise<Page<Message, number>> {
  const values = [task, tenant, after, limit, maxBytes]
  const { rows } = await db.$client.query(
    which === 'kept'
      ? { name: 'kept_message_page', text: messagePageText(isKept), values }
      : turnNumber === undefined
        ? { name: 'message_page', text: messagePageText(), values }
        : { name: 'message_page_of_turn', text: messagePageText('and turn = $6'), values: [...values, turnNumber] },
  )
  return pageOf(
    rows as PageRow[],
    row => toMessage(fromJsonRow(messages, row)),
    message => message.index,
  )
}

/** Not of a turn that was discarded. */
const isKept = 'and not exists (select from turns where turns.task = $1 and turns.number = messages.turn and turns.discarded)'

/** $1 task, $2 tenant, $3 after, $4 limit, $5 bytes. */
function messagePageText(condition = ''): string {
  const bytes = ['content', 'metadata', 'usage', 'response', 'error'].map(bytesOf).join(' + ')
  return `
    with recursive page_keys as (
      select array(
        select index from messages where task = $1 and $2 in (tenant, '${everyTenant}') and index > $3 ${condition} order by index limit $4 + 1
      ) as keys
    ),${fitKeys({ name: 'page', bytesAt: key => `(select ${bytes} from messages where task = $1 and index = ${key})`, maxBytes: '$5' })}
    select to_json(messages) as row, cardinality(keys) > count as more
    from messages, page_keys, (select ${rowsToSend('page', '$4')} as count) as page
    where task = $1 and index = any(keys[1:count]) order by index`
}

/** Everything that one turn has said, and its input. */
export async function turnMessages(db: Database | Transaction, tenant: Tenant, task: TaskId, turnNumber: number): Promise<Message[]> {
  const rows = await db
    .select()
    .from(messages)
    .where(and(eq(messages.task, task), isOf(tenant, messages.tenant), eq(messages.turn, turnNumber)))
    .orderBy(asc(messages.index))
  return rows.map(toMessage)
}
