/** The path from the outbox to the queue, on a real Postgres and a scripted queue. */
import type { Dispatch, TurnQueue } from '@rivulet/broker'
import { createTaskBody } from '@rivulet/contract/tasks'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../test/open-store.ts'
import type { DatabaseHandle } from '../store/connection/database.ts'
import { outbox } from '../store/schema.ts'
import { createTaskAcceptance } from '../store/tasks/accept/accept-tasks.ts'
import type { Intent } from '../store/tasks/outbox.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createRelay, type Relay } from './relay.ts'

const request = createTaskBody.parse({ agent: 'echo' })
let database: DatabaseHandle

beforeAll(async () => {
  database = await openStore()
})
afterAll(() => database.close())

test('what lies in the outbox is sent also while new work never ends', async () => {
  const [forgotten, ...fresh] = await accept(30)
  const isForgotten = () => !sent.flat().includes(forgotten?.turnId ?? '')
  let next = 0
  // The queue gets new work with each batch until the forgotten turn is in it, so a relay that starves the outbox never comes to rest.
  const { relay, sent } = open(() => {
    if (next < fresh.length || isForgotten()) relay.send(fresh[next++ % fresh.length] as Intent)
  })
  relay.send(fresh[next++] as Intent)
  relay.kick()
  await relay.idle()
  expect(isForgotten()).toBe(false)
  expect(await left()).toEqual([])
})

test('what could not be sent stays, and is sent with the next that can be', async () => {
  const all = await accept(3)
  const [first, second, third] = all
  let isAway = true
  const { relay, sent } = open(() => {
    if (isAway) throw new Error('away')
  })
  relay.send(first as Intent)
  relay.send(second as Intent)
  await relay.idle()
  expect(sent).toEqual([])
  expect(await left()).toHaveLength(3)
  isAway = false
  relay.send(third as Intent)
  await relay.idle()
  expect(new Set(sent.flat())).toEqual(new Set(all.map(({ turnId }) => turnId)))
  expect(await left()).toEqual([])
})

async function accept(count: number): Promise<Intent[]> {
  const { accept: one } = createTaskAcceptance(database.databaseFor)
  const accepted = await Promise.all(Array.from({ length: count }, () => one('default', request, null)))
  return accepted.flatMap(each => each?.intent ?? [])
}

async function left(): Promise<number[]> {
  const rows = await database.db.select().from(outbox).orderBy(outbox.id)
  return rows.map(({ id }) => id)
}

/** `enqueue` is asked before anything is in the queue. */
function open(enqueue: () => void): { relay: Relay; sent: string[][] } {
  const sent: string[][] = []
  const queue = {
    async enqueue(dispatches: readonly Dispatch[]) {
      enqueue()
      sent.push(dispatches.map(({ turnId }) => turnId))
    },
  } as TurnQueue
  return {
    relay: createRelay({
      db: database.db,
      queue,
      logger: pino({ level: 'silent' }),
      metrics: createMetrics(),
      backlog: { keepsSpare: () => false, noteSent() {}, notePick() {} },
      workerTimeoutMs: 15_000,
    }),
    sent,
  }
}
