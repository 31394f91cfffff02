/** A child that ends while the turn that waits for it parks: whichever is first, the turn goes on. */

import { spawnBody } from '@rivulet/contract/internal'
import { createTaskBody } from '@rivulet/contract/tasks'
import type { TaskId, TurnId } from '@rivulet/protocol'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { claimWithShare } from '../../../test/give-share.ts'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { findTurn } from '../reads/turns.ts'
import { tasks, turns, waits } from '../schema.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { beginCancel } from '../tasks/cancel-task.ts'
import { parkTurn } from '../waits/park-turn.ts'
import { noteChildEnd, wakeParent } from './child-ends.ts'
import { spawnChildren } from './spawn-children.ts'

const limits = { childDepth: 5, childAlive: 10, childTotal: 10, queuedTurns: 10, agents: null }

let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
})
afterAll(() => database.close())

test('a turn does not park once its last child has ended, also before that end has woken it', async () => {
  const parent = await spawning(['one'])
  await end(parent, 'one')
  expect(await park(parent)).toMatchObject({ result: 'answered', turn: { status: 'running', waits: [{ status: 'answered' }] } })
  expect(await statusOf(parent.task)).toBe('running')
  expect(await wakeParent(database.db, parent)).toBeNull()
})

test('a turn that parks between the ends of two children goes on with the second', async () => {
  const parent = await spawning(['one', 'two'])
  await end(parent, 'one')
  expect(await park(parent)).toMatchObject({ result: 'parked', turn: { status: 'waiting' } })
  expect(await wakeParent(database.db, parent)).toBeNull()
  await end(parent, 'two')
  expect(await wakeParent(database.db, parent)).toMatchObject({ status: 'queued', resumed: 'queued' })
  expect(await statusOf(parent.task)).toBe('queued')
})

test('a cancel of a parent cancels its waits for children, also for those that had not started and end with it at once', async () => {
  const parent = await spawning(['queued', 'running'])
  const [running] = await database.db
    .select()
    .from(turns)
    .where(eq(turns.task, parent.children.get('running') ?? ''))
  await claimWithShare(database.db, { turnId: running?.id ?? '', claim: crypto.randomUUID(), worker: 'w', leaseMs: 60_000, pinGraceMs: 0 })
  const outcome = { status: 'canceled', stopReason: 'aborted' } as const
  const { seized, children } = await database.db.transaction(tx => beginCancel(tx, { tenant: 'default' }, parent.task, outcome))
  expect(children.map(({ ended }) => ended.length).sort()).toEqual([0, 1])
  expect(seized?.claimed.turn.waits?.map(({ status }) => status)).toEqual(['canceled', 'canceled'])
  const stored = await database.db.select({ status: waits.status }).from(waits).where(eq(waits.turn, parent.turnId))
  expect(stored).toEqual([{ status: 'canceled' }, { status: 'canceled' }])
})

type Parent = { turnId: TurnId; task: TaskId; claimId: string; children: Map<string, TaskId> }

/** A claimed turn that has spawned children of these names, and waits for all of them. */
async function spawning(names: string[]): Promise<Parent> {
  const { task, turn } = await database.db.transaction(tx => createTask(tx, 'default', createTaskBody.parse({ agent: 'echo' }), 10))
  const turnId = turn?.id ?? expect.fail('It has no turn')
  const claimId = crypto.randomUUID()
  await claimWithShare(database.db, { turnId, claim: claimId, worker: 'w', leaseMs: 60_000, pinGraceMs: 0 })
  const wanted = names.map(name => ({ name, agent: 'echo', detached: false, onParentEnd: 'cancel' }))
  const spawned = await spawnChildren(database.db, spawnBody.parse({ turnId, claimId, children: wanted }), limits)
  if (spawned.result !== 'spawned') expect.fail(spawned.result)
  const children = new Map(spawned.children.flatMap(child => ('task' in child ? [[child.name, child.task]] : [])))
  return { turnId, task: task.id, claimId, children }
}

async function end({ task, children }: Parent, name: string): Promise<void> {
  const child = { task: children.get(name) ?? expect.fail('No such child'), number: 1, parent: task }
  await database.db.transaction(tx => noteChildEnd(tx, child, { status: 'completed' }))
}

async function park({ turnId, claimId }: Parent) {
  const turn = (await findTurn(database.db, turnId)) ?? expect.fail('It is gone')
  return parkTurn(database.db, turn, { epoch: turn.epoch ?? 0, claimId, messages: [], joins: new Map(), state: null, keptTo: 0 })
}

async function statusOf(task: TaskId): Promise<string | undefined> {
  return (await database.db.select({ status: tasks.status }).from(tasks).where(eq(tasks.id, task)))[0]?.status
}
