/**
 * The usual end of a turn, one behind which no other waits, as a transaction of one round trip. It does everything or nothing: where something
 * is unusual it answers null, and the long way (`finishTurn`) finds out what. A test holds the two to the same.
 */
import { type Message, type TurnStatus, turnStatusesBefore } from '@rivulet/protocol'
import type { Database } from '../connection/database.ts'
import { columnsOf, fromJsonRow, type JsonRow, toJsonRow } from '../connection/json-rows.ts'
import { toMessageRow } from '../rows.ts'
import { messages, turns } from '../schema.ts'
import { endedList, holdTaskOf, raisedEpoch } from '../tasks/queue-turn.ts'
import type { EndedTurn, Holding, Outcome } from './finish-turn.ts'

export async function endOnly(
  db: Database,
  { turn, tenant, epoch, canceling, claim }: Holding,
  { outcome, said }: { outcome: Outcome; said: readonly Message[] },
): Promise<EndedTurn | null> {
  const { status, stopReason, usage = null, error = null, detail = null } = outcome
  const rows = said.map(message => toJsonRow(messages, toMessageRow(message, tenant)))
  const json = [usage, error].map(value => value && JSON.stringify(value))
  const before: TurnStatus[] = canceling ? turnStatusesBefore(status) : ['running']
  const values = [turn, epoch, canceling, before, status, stopReason, ...json, detail, JSON.stringify(rows), claim ?? null]
  const result = await db.$client.transact([holdTaskOf(turn), { name: 'end_only', text: endText, values }])
  const [found] = result.rows as { turn: JsonRow; agent: string }[]
  if (!found) return null
  return { ...fromJsonRow(turns, found.turn), agent: found.agent }
}

/**
 * $1 turn, $2 epoch, $3 canceling, $4 states it may be in, $5 status, $6 stop reason, $7 usage, $8 error, $9 detail, $10 messages,
 * $11 claim or null. Returns turn and agent.
 */
const endText = `
with ended as (
  update turns set
    status = $5, stop_reason = $6, usage = $7, error = $8, error_detail = $9, finished_at = now(),
    lease_until = null, canceling = false
  where id = $1 and epoch = $2 and canceling = $3 and status = any($4) and ($11::text is null or claim = $11)
    and not exists (select from turns other where other.task = turns.task and other.id <> turns.id and other.status not in (${endedList}))
  returning *
), said as (
  insert into messages (${columnsOf(messages)})
  select ${columnsOf(messages)} from json_populate_recordset(null::messages, $10) where exists (select from ended)
), settled as (
  update tasks set status = $5, epoch = ${raisedEpoch}, updated_at = now() from ended where tasks.id = ended.task returning tasks.agent
)
select to_json(ended) as turn, agent from ended, settled`
