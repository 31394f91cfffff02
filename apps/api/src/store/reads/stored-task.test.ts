/** Where a task stands, beside the same rows read one table at a time. */
import { randomBytes, randomUUID } from 'node:crypto'
import { type CreateTask, createTaskBody } from '@rivulet/contract/tasks'
import type { Message } from '@rivulet/protocol'
import { and, eq } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { everyTenant } from '../connection/tenant.ts'
import { type TurnRow, toMessageRow } from '../rows.ts'
import { messages, turns } from '../schema.ts'
import { createTaskAcceptance } from '../tasks/accept/accept-tasks.ts'
import { latestTurns } from './latest-turns.ts'
import { listTasks } from './list-tasks.ts'
import { listMessages } from './messages.ts'
import { createStoredTaskReader, type StoredTask } from './stored-task.ts'
import { getTask } from './tasks.ts'

const tenant = 'default'
const MiB = 1024 * 1024
const request = createTaskBody.parse({ agent: 'echo', input: 'hello', metadata: { a: 1 }, params: ['\u0001', 1.5, null] })
let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
})
afterAll(() => database.close())

test('it is what the tables say', async () => {
  const { task, turn } = await createTask()
  await addTurns(turn, 105)
  await say(task, ['a', '\u0000"\\\n', '\u{1F600}', 'ü'.repeat(300)])
  const db = database.databaseFor(tenant)
  expect(await stored(task, MiB)).toEqual({
    task: await getTask(db, tenant, task),
    turns: await latestTurns(db, tenant, task, MiB),
    messages: (await listMessages(db, tenant, task, { limit: 100 }, MiB)).data,
    ...{ epoch: 1, nextIndex: 4, starts: [], state: null },
  })
})

test('it tells where messages belong, also where none of them fits', async () => {
  const { task, turn } = await createTask()
  await addTurns(turn, 2)
  expect(await stored(task, MiB)).toMatchObject({ messages: [], nextIndex: 0, starts: [] })
  await database.db.update(turns).set({ firstIndex: 1 }).where(eq(turns.id, turn.id))
  await database.db
    .update(turns)
    .set({ firstIndex: 3 })
    .where(and(eq(turns.task, task), eq(turns.number, 2)))
  await say(task, ['a', 'b', 'c', 'd'.repeat(2 * MiB)])
  // The first turn has an input, which comes before what the agent says; the second has none.
  const starts = [
    { turnNumber: 1, index: 0 },
    { turnNumber: 2, index: 3 },
  ]
  expect(await stored(task, MiB)).toMatchObject({ messages: [], nextIndex: 4, starts })
})

test('of messages, those that fit, the newest, without holes: beyond a page, in any script, and none where the newest is too long', async () => {
  const many = await createTask()
  await say(
    many.task,
    Array.from({ length: 250 }, () => 'a'),
  )
  const small = await newest(many.task, MiB)
  expect(small.map(({ index }) => index)).toEqual(Array.from({ length: 250 }, (_, index) => index))
  const bytes = (from: number) => small.slice(from).reduce((sum, message) => sum + sizeOf(message), 0)
  for (const from of [0, 1, 100, 149, 150, 151, 249]) {
    expect((await newest(many.task, bytes(from))).map(({ index }) => index)[0]).toBe(from)
    expect((await newest(many.task, bytes(from) - 1)).map(({ index }) => index)[0]).toBe(from === 249 ? undefined : from + 1)
  }
  const wide = await createTask()
  await say(
    wide.task,
    Array.from({ length: 3 }, () => '\u6f22"\u0007'.repeat(10_000)),
  )
  const whole = await newest(wide.task, MiB)
  const length = sizeOf(whole[0])
  expect(whole).toHaveLength(3)
  expect(await newest(wide.task, 2 * length)).toEqual(whole.slice(1))
  expect(await newest(wide.task, length - 1)).toEqual([])
})

test('of inputs and params, those that fit beside what the task carries, the newest first; the others are named', async () => {
  const { task, turn } = await createTask()
  const value = (length: number) => ({ type: 'text', text: 'a'.repeat(length), format: 'plain' }) as const
  const empty = sizeOf(value(0))
  const spent = sizeOf(request.metadata) + sizeOf(request.params)
  const input = (bytes: number) => value(bytes - empty)
  await database.db
    .update(turns)
    .set({ input: input(1_000), params: 'p' })
    .where(eq(turns.id, turn.id))
  await addTurns(turn, 2, number => ({ input: input(number * 1_000), params: number === 3 ? 'q' : null }))
  const shown = async (maxBytes: number) =>
    (await stored(task, maxBytes)).turns.map(({ input, params, omitted }) => [!!input, params, omitted])
  // Postgres writes a space after the colon of the metadata.
  const all = spent + 1 + 6_000 + sizeOf('q') + sizeOf('p')
  expect(await shown(all)).toEqual([
    [true, 'p', undefined],
    [true, undefined, undefined],
    [true, 'q', undefined],
  ])
  expect(await shown(all - 1)).toEqual([
    [true, undefined, ['params']],
    [true, undefined, undefined],
    [true, 'q', undefined],
  ])
  const both = ['input', 'params']
  expect(await shown(all - sizeOf('p') - 1)).toEqual([
    [false, undefined, both],
    [true, undefined, undefined],
    [true, 'q', undefined],
  ])
  expect(await shown(spent + 1 + 3_000 + sizeOf('q') - 1)).toEqual([
    [false, undefined, both],
    [false, undefined, ['input']],
    [true, undefined, ['params']],
  ])
  expect(await shown(spent + 1 + 2_999)).toEqual([
    [false, undefined, both],
    [false, undefined, ['input']],
    [false, undefined, both],
  ])
  expect((await latestTurns(database.databaseFor(tenant), tenant, task, 5_003)).map(({ omitted }) => omitted)).toEqual([
    both,
    undefined,
    undefined,
  ])
})

test('of a task, metadata before params; what does not fit is named', async () => {
  const { task } = await createTask()
  const carried = async (maxBytes: number) => {
    const { params, metadata, omitted } = (await stored(task, maxBytes)).task
    return [metadata, params, omitted]
  }
  const bytes = sizeOf(request.metadata) + 1
  expect(await carried(bytes + sizeOf(request.params))).toEqual([request.metadata, request.params, undefined])
  expect(await carried(bytes)).toEqual([request.metadata, null, ['params']])
  expect(await carried(bytes - 1)).toEqual([{}, null, ['params', 'metadata']])
})

describe('what does not fit stays in Postgres', () => {
  const budget = MiB / 4
  const random = randomBytes(budget).toString('hex')

  test.each([
    ['that compresses well', 'b'.repeat(2 * budget)],
    ['that does not compress', random],
  ])('%s', async (_, large) => {
    const { task, turn } = await createTask({ params: large, metadata: { large } })
    await addTurns(turn, 10, () => ({ input: { type: 'text', text: large, format: 'plain' }, params: large }))
    await say(task, [...Array.from({ length: 5 }, () => large), ...Array.from({ length: 101 }, () => 'small')])
    const rows = spyOnRows()
    expect((await newest(task, budget)).map(({ index }) => index)[0]).toBe(5)
    await latestTurns(database.databaseFor(tenant), tenant, task, budget)
    const query = { agent: undefined, status: undefined, name: undefined, cursor: undefined, limit: 10, metadata: {} }
    const page = await listTasks(database.databaseFor(tenant), tenant, query, budget)
    expect([page.data.map(({ id }) => id), page.nextCursor]).toEqual([[task], task])
    expect(JSON.stringify(rows()).length).toBeLessThan(4.5 * budget)
  })
})

test("another tenant's task is not found; the server itself sees all", async () => {
  const { task } = await createTask()
  const missing = expect.objectContaining({ code: 'task_not_found' })
  const ofTenant = createStoredTaskReader(database.databaseFor, MiB)
  const ofServer = createStoredTaskReader(() => database.db, MiB)
  await expect(ofTenant('other', task)).rejects.toEqual(missing)
  await expect(ofServer('other', task)).rejects.toEqual(missing)
  await expect(ofTenant(tenant, randomUUID())).rejects.toEqual(missing)
  expect((await ofServer(everyTenant, task)).task.id).toBe(task)
})

test('tasks that are read together are each what it is alone, and one that does not exist is missing alone', async () => {
  const made = [await createTask(), await createTask({ params: { of: 'the second' } }), await createTask()]
  await addTurns(made[0]?.turn as TurnRow, 3)
  for (const { task } of made.slice(1)) await say(task, ['a', 'b', task])
  const ids = [...made.map(({ task }) => task), randomUUID()]
  const alone = await Promise.allSettled(ids.map(id => stored(id, 2_000)))
  const readTask = createStoredTaskReader(database.databaseFor, 2_000)
  expect(await Promise.allSettled(ids.map(id => readTask(tenant, id)))).toEqual(alone)
  expect(alone.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected'])
})

async function createTask(values: Partial<CreateTask> = {}): Promise<{ task: string; turn: TurnRow }> {
  const accepted = await createTaskAcceptance(database.databaseFor).accept(tenant, { ...request, ...values }, null)
  if (!accepted) throw new Error('It was not accepted')
  return { task: accepted.accepted.task.id, turn: accepted.accepted.turn }
}

async function addTurns(first: TurnRow, count: number, values: (number: number) => Partial<TurnRow> = () => ({})): Promise<void> {
  const more = Array.from({ length: count }, (_, i) => ({ ...first, id: randomUUID(), number: i + 2, input: null, ...values(i + 2) }))
  await database.db.insert(turns).values(more)
}

async function say(task: string, texts: string[]): Promise<void> {
  const said = texts.map((text, index): Message => {
    const content = { type: 'text', text, format: 'plain' } as const
    const at = new Date().toISOString()
    return {
      task,
      index,
      turn: 1,
      attempt: 1,
      author: 'agent',
      content,
      metadata: { text },
      status: 'complete',
      createdAt: at,
      finishedAt: at,
    }
  })
  await database.db.insert(messages).values(said.map(message => toMessageRow(message, tenant)))
}

function stored(task: string, maxBytes: number): Promise<StoredTask> {
  return createStoredTaskReader(database.databaseFor, maxBytes)(tenant, task)
}

async function newest(task: string, maxBytes: number): Promise<Message[]> {
  return (await stored(task, maxBytes)).messages
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}

/** The rows that Postgres has sent since. */
function spyOnRows(): () => unknown[] {
  const rows: unknown[] = []
  const query = Client.prototype.query as (...args: unknown[]) => Promise<{ rows: unknown[] }>
  const spy = vi.spyOn(Client.prototype, 'query').mockImplementation(function (this: Client, ...args: unknown[]) {
    return query.apply(this, args).then(result => {
      rows.push(...result.rows)
      return result
    })
  } as never)
  onTestFinished(() => void spy.mockRestore())
  return () => rows
}
