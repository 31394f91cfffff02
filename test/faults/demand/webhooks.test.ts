/**
 * Webhooks while an API is killed at each of its failpoints: the end of every turn is delivered at least once, under one id, and when it is, the rows of
 * the turn can be read.
 */
import { failpoints } from '@rivulet/runtime/failpoint'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { until } from '../../support/until.ts'
import { type Bench, startBench } from '../bench.ts'
import { ofJoins, ofWorkers, tellThrough } from '../crash-point.ts'
import { hurryDeliveries, notOnTheWay, receiveDeliveries } from '../disturbances.ts'

let bench: Bench

beforeAll(async () => {
  bench = await startBench({ apis: 1, workers: 0, env: { WEBHOOK_ALLOW_PRIVATE: 'on' } })
})
afterAll(() => bench.close())

type Row = { turn: string; status: string; messages: number }

const ofApis = failpoints.filter(point => !ofWorkers.has(point) && !ofJoins.has(point))

test.each(ofApis)('an API is killed at "%s"', { timeout: 900_000 }, async point => {
  const received: { id: string; turn: string; status: string; row: Row | undefined }[] = []
  const before = await endedTurns()
  const { url, close } = await receiveDeliveries(async ({ id, data: { task, turn: number, status } }) => {
    const turn = `${task} ${number}`
    // As another connection sees it at this moment.
    const row = (await endedTurns()).get(turn)
    received.push({ id, turn, status, row })
  })
  onTestFinished(close)
  const [healthy = ''] = bench.urls
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ url, events: ['turn.finished'] })
  const created = await fetch(`${healthy}/v1/webhooks`, { method: 'POST', headers, body })
  const { webhook } = (await created.json()) as { webhook: { id: string } }

  await tellThrough(bench, [`${point}=kill`], notOnTheWay[point])

  const ended = [...(await endedTurns()).values()].filter(({ turn }) => !before.has(turn))
  expect(ended.length).toBeGreaterThan(0)
  await until('every end is delivered', async () => {
    await hurryDeliveries(bench)
    return ended.every(({ turn }) => received.some(one => one.turn === turn))
  })
  for (const row of ended) {
    const own = received.filter(({ turn }) => turn === row.turn)
    expect(new Set(own.map(({ id }) => id)).size).toBe(1)
    expect(own.map(one => [one.status, one.row])).toEqual(own.map(() => [row.status, row]))
  }
  expect(new Set(received.map(({ id }) => id)).size).toBe(ended.length)
  await fetch(`${healthy}/v1/webhooks/${webhook.id}`, { method: 'DELETE' })
})

/** By task and number. */
async function endedTurns(): Promise<Map<string, Row>> {
  const { rows } = await bench.platform.pg.query<Row>(
    `select turns.task || ' ' || number as turn, turns.status, (select count(*) from messages where messages.task = turns.task and messages.turn = turns.number)::int as messages
     from turns where status in ('completed', 'failed', 'canceled')`,
  )
  return new Map(rows.map(row => [row.turn, row]))
}
