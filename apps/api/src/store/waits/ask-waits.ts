/** Opens waits of a turn, for the worker that holds it. A name that the turn has asked before is the same wait, with its answer if it has one. */
import type { AskBody, WantedWait } from '@rivulet/contract/internal'
import { maxWaits, maxWaitsBytes, type TurnId, type Wait } from '@rivulet/protocol'
import { eq, sql } from 'drizzle-orm'
import { v7 as uuidv7 } from 'uuid'
import type { Database, Transaction } from '../connection/database.ts'
import { msFromNow } from '../connection/moments.ts'
import { everyone } from '../connection/tenant.ts'
import type { TaskRow, TurnRow } from '../rows.ts'
import { turns, waits } from '../schema.ts'
import { lockTask, raiseEpoch } from '../tasks/held-task.ts'
import { isHeldBy } from '../turns/held-turn.ts'
import { closeWaits, syncWaits } from './close-waits.ts'
import { takeSignal } from './signals.ts'
import { hasOpenWait, noteChange, waitsOf } from './wait-rows.ts'

export type Asked = { result: 'asked'; turn: TurnRow; waits: Wait[] } | { result: 'superseded' | 'too_many' | 'too_large' }

/** Rolls back what was inserted. */
export class TooLarge extends Error {}

export async function askWaits(db: Database, { turnId, claimId, waits: wanted }: AskBody): Promise<Asked> {
  const work = db.transaction(async (tx): Promise<Asked> => {
    const held = await holdTurn(tx, turnId, claimId)
    if (!held) return { result: 'superseded' }
    const known = await waitsOf(tx, turnId)
    const names = new Set(known.map(({ name }) => name))
    const fresh = wanted.filter(({ name }) => !names.has(name))
    if (known.length + fresh.length > maxWaits) return { result: 'too_many' }
    for (const wait of fresh) await openWait(tx, held, wait)
    const turn = fresh.length > 0 ? await showOpened(tx, held.turn) : held.turn
    const all = new Map((turn.waits ?? []).map(wait => [wait.name, wait]))
    return { result: 'asked', turn, waits: wanted.flatMap(({ name }) => all.get(name) ?? []) }
  })
  return work.catch((error): Asked => {
    if (error instanceof TooLarge) return { result: 'too_large' }
    throw error
  })
}

/** The waits of a turn as they are now, those whose time is up closed. Null when the turn is no longer this claim's. */
export async function readWaits(db: Database, turnId: TurnId, claimId: string): Promise<{ turn: TurnRow; isChanged: boolean } | null> {
  return db.transaction(async tx => {
    const held = await holdTurn(tx, turnId, claimId)
    if (!held) return null
    const synced = await syncWaits(tx, held.turn)
    const expired = await expireDue(tx, synced ?? held.turn)
    return { turn: expired ?? synced ?? held.turn, isChanged: expired !== null || synced !== null }
  })
}

export type Held = { task: TaskRow; turn: TurnRow }

/** The turn of a claim, and its task, held until the transaction ends. Null when the turn is no longer this claim's. */
export async function holdTurn(tx: Transaction, turnId: TurnId, claimId: string): Promise<Held | null> {
  const [found] = await tx.select({ task: turns.task }).from(turns).where(eq(turns.id, turnId))
  if (!found) return null
  const task = await lockTask(tx, everyone, found.task)
  const [turn] = await tx.select().from(turns).where(isHeldBy(turnId, claimId))
  return turn ? { task, turn } : null
}

async function openWait(tx: Transaction, { task, turn }: Held, wanted: WantedWait): Promise<void> {
  const { name, kind, assignee = null, metadata, expires, ...request } = wanted
  const expiresAt = 'at' in expires ? new Date(expires.at) : msFromNow(expires.inMs)
  const answer = kind === 'event' ? await takeSignal(tx, task.id, name) : null
  await tx.insert(waits).values({
    ...{ id: uuidv7(), task: task.id, tenant: task.tenant, turn: turn.id, number: turn.number, agent: task.agent },
    ...{ name, kind, request, assignee, metadata, expiresAt: sql`${expiresAt}`, answer, status: answer ? 'answered' : 'open' },
  })
}

export async function showOpened(tx: Transaction, turn: TurnRow): Promise<TurnRow> {
  const opened = await noteChange(tx, turn.id)
  if (Buffer.byteLength(JSON.stringify(opened.waits)) > maxWaitsBytes) throw new TooLarge()
  const due = await expireDue(tx, opened)
  if (due) return due
  await raiseEpoch(tx, turn.task, hasOpenWait(opened) ? 'waiting' : undefined)
  return opened
}

/** Without a look at the rows where nothing can be due. */
async function expireDue(tx: Transaction, turn: TurnRow): Promise<TurnRow | null> {
  if (!hasOpenWait(turn)) return null
  const expired = await closeWaits(tx, turn.id, { status: 'expired' }, sql`${waits.expiresAt} <= now()`)
  if (expired) await raiseEpoch(tx, turn.task, hasOpenWait(expired) ? 'waiting' : 'running')
  return expired
}
