/** Where a task stands, beside the same rows read one table at a time. */
import { randomUUID } from 'node:crypto'
import { createTaskBody, type Message } from '@rivulet/protocol'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { openStore } from '../../test/open-store.ts'
import { createTaskAcceptance } from './accept-tasks.ts'
import type { DatabaseHandle } from './database.ts'
import { getTask, latestTurns, listMessages } from './read.ts'
import { type TurnRow, toMessageRow } from './rows.ts'
import { messages, turns } from './schema.ts'
import { readStanding } from './standing.ts'
import { everyTenant } from './tenant.ts'

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
  const db = database.of(tenant)
  expect(await readStanding(db, tenant, task, MiB)).toEqual({
    task: await getTask(db, tenant, task),
    turns: await latestTurns(db, tenant, task),
    messages: (await listMessages(db, tenant, task, { limit: 100 })).data,
  })
})

test('of messages, those that fit, the newest, without holes: beyond a page, in any script, and none where the newest is too long', async () => {
  const many = await createTask()
  await say(
    many.task,
    Array.from({ length: 250 }, () => 'a'),
  )
  const small = await standing(many.task, MiB)
  expect(small.map(({ index }) => index)).toEqual(Array.from({ length: 250 }, (_, index) => index))
  const bytes = (from: number) => small.slice(from).reduce((sum, message) => sum + JSON.stringify(message).length, 0)
  for (const from of [0, 1, 100, 149, 150, 151, 249]) {
    expect((await standing(many.task, bytes(from))).map(({ index }) => index)[0]).toBe(from)
    expect((await standing(many.task, bytes(from) - 1)).map(({ index }) => index)[0]).toBe(from === 249 ? undefined : from + 1)
  }
  const wide = await createTask()
  await say(
    wide.task,
    Array.from({ length: 3 }, () => '\u6f22"\u0007'.repeat(10_000)),
  )
  const whole = await standing(wide.task, MiB)
  const length = JSON.stringify(whole[0]).length
  expect(whole).toHaveLength(3)
  expect(await standing(wide.task, 2 * length)).toEqual(whole.slice(1))
  expect(await standing(wide.task, length - 1)).toEqual([])
})

test('what cannot fit stays in Postgres', async () => {
  const { task } = await createTask()
  await say(task, ['b'.repeat(MiB), 'c'.repeat(MiB), 'd'])
  const answered = spyOnAnswers()
  expect((await standing(task, MiB)).map(({ index }) => index)).toEqual([2])
  expect(JSON.stringify(answered()).length).toBeLessThan(MiB / 2)
})

test("another tenant's task is none; the server itself sees all", async () => {
  const { task } = await createTask()
  const missing = expect.objectContaining({ code: 'task_not_found' })
  await expect(readStanding(database.of('other'), 'other', task, MiB)).rejects.toEqual(missing)
  await expect(readStanding(database.db, 'other', task, MiB)).rejects.toEqual(missing)
  await expect(readStanding(database.of(tenant), tenant, randomUUID(), MiB)).rejects.toEqual(missing)
  expect((await readStanding(database.db, everyTenant, task, MiB)).task.id).toBe(task)
})

async function createTask(): Promise<{ task: string; turn: TurnRow }> {
  const accepted = await createTaskAcceptance(database.of).accept(tenant, request, null)
  if (!accepted) throw new Error('It was not accepted')
  return { task: accepted.accepted.task.id, turn: accepted.accepted.turn }
}

async function addTurns(first: TurnRow, count: number): Promise<void> {
  const more = Array.from({ length: count }, (_, i) => ({ ...first, id: randomUUID(), number: i + 2, input: null }))
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

async function standing(task: string, maxBytes: number): Promise<Message[]> {
  return (await readStanding(database.of(tenant), tenant, task, maxBytes)).messages
}

/** The rows that Postgres has sent since. */
function spyOnAnswers(): () => unknown[] {
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
