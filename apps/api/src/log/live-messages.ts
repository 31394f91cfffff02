/** A task's messages, with those of a turn that has not ended as its log has them. */
import type { LogReader } from '@rivulet/broker'
import type { ListMessages } from '@rivulet/contract/messages'
import { type Message, messagesOf, type TaskId } from '@rivulet/protocol'
import type { Database } from '../store/connection/database.ts'
import type { Tenant } from '../store/connection/tenant.ts'
import { listMessages, turnMessages } from '../store/reads/messages.ts'
import type { Page } from '../store/reads/pages.ts'
import { startedTurn } from '../store/reads/turns.ts'
import type { TurnRow } from '../store/rows.ts'
import { foldFrom } from './log-fold.ts'

export async function listLiveMessages(
  db: Database,
  log: LogReader,
  tenant: Tenant,
  task: TaskId,
  query: ListMessages,
  maxBytes: number,
): Promise<Page<Message, number>> {
  // The log first: a turn that is committed meanwhile is then in both, and not in neither.
  const started = await startedTurn(db, tenant, task)
  const live = started ? await liveMessages(log, started, query) : []
  const stored = await listMessages(db, tenant, task, query, maxBytes)
  if (stored.nextCursor !== null || live.length === 0) return stored
  const known = new Set(stored.data.map(({ index }) => index))
  const all = [...stored.data, ...live.filter(({ index }) => !known.has(index))].sort((a, b) => a.index - b.index)
  const data = firstFitting(all.slice(0, query.limit), maxBytes)
  return { data, nextCursor: all.length > data.length ? (data.at(-1)?.index ?? null) : null }
}

/** All messages of one turn, as stored, or as its log has them while it has not ended. */
export async function turnMessagesNow(db: Database, log: LogReader, tenant: Tenant, task: TaskId, turnNumber: number): Promise<Message[]> {
  const started = await startedTurn(db, tenant, task)
  const live = started?.number === turnNumber ? await liveMessages(log, started, { limit: 0 }) : []
  const stored = await turnMessages(db, tenant, task, turnNumber)
  const known = new Set(stored.map(({ index }) => index))
  return [...stored, ...live.filter(({ index }) => !known.has(index))].sort((a, b) => a.index - b.index)
}

async function liveMessages(log: LogReader, turn: TurnRow, { after = -1, turn: wanted }: ListMessages): Promise<Message[]> {
  if (!turn.epoch || (wanted !== undefined && wanted !== turn.number)) return []
  const { state } = await foldFrom(log, turn.task, turn.epoch, turn.keptTo)
  return messagesOf(state).filter(message => message.turn === turn.number && message.index > after)
}

/** At least one: a page without a message would never end. */
function firstFitting(messages: Message[], maxBytes: number): Message[] {
  let bytes = 0
  const end = messages.findIndex(message => {
    bytes += Buffer.byteLength(JSON.stringify(message))
    return bytes > maxBytes
  })
  return end < 0 ? messages : messages.slice(0, Math.max(1, end))
}
