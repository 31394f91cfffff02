/**
 * Creates the children of a turn, for the worker that holds it: tasks of their own, and for each that the turn waits for a wait. A name that the turn has
 * spawned before is the same child. The limits of the tree are checked with its root held by an advisory lock, so that no two spawns exceed them together.
 */

import type { SpawnBody, WantedChild } from '@rivulet/contract/internal'
import { type ErrorCode, isErrorCode, RivuletError, type TaskId, type Wait } from '@rivulet/protocol'
import { count, eq, inArray, sql } from 'drizzle-orm'
import { v7 as uuidv7 } from 'uuid'
import type { Database, Transaction } from '../connection/database.ts'
import { msFromNow } from '../connection/moments.ts'
import { copyReferences } from '../files/file-references.ts'
import type { TurnRow } from '../rows.ts'
import { children, tasks, waits } from '../schema.ts'
import { type Accepted, createTask } from '../tasks/accept/create-task.ts'
import { unfinished } from '../turns/turn-states.ts'
import { type Held, holdTurn, showOpened, TooLarge } from '../waits/ask-waits.ts'
import { syncWaits } from '../waits/close-waits.ts'
import { waitsOf } from '../waits/wait-rows.ts'

export type TreeLimits = { childDepth: number; childAlive: number; childTotal: number; queuedTurns: number }

/** `agents` are those that the worker's key allows; null: all. */
type SpawnLimits = TreeLimits & { agents: readonly string[] | null }

export type SpawnedChild = { name: string } & ({ task: TaskId } | { error: { code: ErrorCode; message: string } })

type Spawned =
  | { result: 'spawned'; turn: TurnRow; children: SpawnedChild[]; waits: Wait[]; accepted: Accepted[] }
  | { result: 'superseded' | 'too_large' }

type Place = { root: TaskId; depth: number }

export async function spawnChildren(db: Database, { turnId, claimId, children: wanted }: SpawnBody, limits: SpawnLimits): Promise<Spawned> {
  const work = db.transaction(async (tx): Promise<Spawned> => {
    const found = await holdTurn(tx, turnId, claimId)
    if (!found) return { result: 'superseded' }
    // A child that has ended may have answered its wait already.
    const held = { ...found, turn: (await syncWaits(tx, found.turn)) ?? found.turn }
    const known = await tx.select().from(children).where(eq(children.turn, turnId))
    const spawned = new Map<string, SpawnedChild>(known.map(({ name, child }) => [name, { name, task: child }]))
    const fresh = wanted.filter(({ name }) => !spawned.has(name))
    const accepted: Accepted[] = []
    if (fresh.length > 0) {
      const place = await placeOf(tx, held.task.id)
      for (const child of fresh) spawned.set(child.name, await spawn(tx, held, child, place, limits, accepted))
    }
    const isOpened = fresh.some(({ name, detached }) => !detached && 'task' in (spawned.get(name) ?? {}))
    const turn = isOpened ? await showOpened(tx, held.turn) : held.turn
    const names = new Set(wanted.map(({ name }) => name))
    return {
      ...{ result: 'spawned', turn, accepted },
      children: wanted.flatMap(({ name }) => spawned.get(name) ?? []),
      waits: (turn.waits ?? []).filter(({ name, kind }) => kind === 'task' && names.has(name)),
    }
  })
  return work.catch((error): Spawned => {
    if (error instanceof TooLarge) return { result: 'too_large' }
    throw error
  })
}

/** Where a task is in its tree. Its root is locked for other spawns until this transaction ends. */
async function placeOf(tx: Transaction, task: TaskId): Promise<Place> {
  const [own] = await tx.select({ root: children.root, depth: children.depth }).from(children).where(eq(children.child, task))
  const place = own ?? { root: task, depth: 0 }
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${place.root}, 26))`)
  return place
}

/** In a savepoint: a child that is refused leaves nothing, and the others of its call are created. */
async function spawn(
  tx: Transaction,
  held: Held,
  wanted: WantedChild,
  { root, depth }: Place,
  limits: SpawnLimits,
  accepted: Accepted[],
): Promise<SpawnedChild> {
  const { name, agent } = wanted
  try {
    if (limits.agents && !limits.agents.includes(agent))
      throw new RivuletError('forbidden', `The worker's key does not allow agent "${agent}"`)
    const created = await tx.transaction(async own => {
      await requireRoom(own, { root, depth: depth + 1 }, limits)
      return createChild(own, held, wanted, { root, depth: depth + 1 }, limits.queuedTurns)
    })
    accepted.push(created)
    return { name, task: created.task.id }
  } catch (error) {
    if (!(error instanceof RivuletError) || !isErrorCode(error.code) || error.retryable) throw error
    return { name, error: { code: error.code, message: error.message } }
  }
}

async function requireRoom(tx: Transaction, { root, depth }: Place, { childDepth, childAlive, childTotal }: TreeLimits): Promise<void> {
  const [found] = await tx
    .select({ total: count(), alive: sql`count(*) filter (where ${inArray(tasks.status, unfinished)})`.mapWith(Number) })
    .from(children)
    .leftJoin(tasks, eq(tasks.id, children.child))
    .where(eq(children.root, root))
  const { total = 0, alive = 0 } = found ?? {}
  if (depth > childDepth) throw tooMany(`Children are at most ${childDepth} levels deep (MAX_CHILD_DEPTH)`)
  if (alive >= childAlive) throw tooMany(`A task has at most ${childAlive} children at a time, with theirs (MAX_CHILD_ALIVE)`)
  if (total >= childTotal) throw tooMany(`A task has at most ${childTotal} children in all, with theirs (MAX_CHILD_TOTAL)`)
}

function tooMany(message: string): RivuletError {
  return new RivuletError('too_many_children', message)
}

async function createChild(tx: Transaction, held: Held, wanted: WantedChild, place: Place, maxQueued: number): Promise<Accepted> {
  const { task: parent, turn } = held
  const { name, detached, onParentEnd, callId, agent, input, params, timeoutMs } = wanted
  const { priority, concurrencyKey, tenant } = parent
  const body = {
    ...{ agent, priority, start: true, delayMs: 0 },
    ...(input !== undefined && { input }),
    ...(params !== undefined && { params }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(concurrencyKey !== null && { concurrencyKey }),
  }
  const created = await createTask(tx, tenant, body, maxQueued, turn.traceparent ?? undefined)
  const child = created.task.id
  const [task] = await tx.update(tasks).set({ parent: parent.id }).where(eq(tasks.id, child)).returning()
  const own = { child, tenant, parent: parent.id, turn: turn.id, number: turn.number, name, callId: callId ?? null, ...place }
  await tx.insert(children).values({ ...own, endsWithParent: onParentEnd === 'cancel' })
  await copyReferences(tx, parent, { id: child, tenant })
  if (!detached) await openWait(tx, held, wanted, child)
  return { ...created, task: task ?? created.task }
}

/** Open for as long as the child takes: the child has a deadline of its own. */
async function openWait(tx: Transaction, { task, turn }: Held, { name, agent, callId }: WantedChild, child: TaskId): Promise<void> {
  if ((await waitsOf(tx, turn.id)).some(wait => wait.name === name))
    throw new RivuletError('bad_call', `Two waits are named "${name}", but a wait is stored by its name`)
  const request = { title: `Waiting for ${agent}`, actions: [], ...(callId !== undefined && { callId }) }
  await tx.insert(waits).values({
    ...{ id: uuidv7(), task: task.id, tenant: task.tenant, turn: turn.id, number: turn.number, agent: task.agent },
    ...{ name, kind: 'task', request, metadata: {}, child, status: 'open', expiresAt: sql`${msFromNow(longestMs)}` },
  })
}

const longestMs = 365 * 86_400_000
