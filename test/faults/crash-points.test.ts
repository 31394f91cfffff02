/** Crashes in the midst of a step that is not one step: between a commit and its answer, between the queue and the outbox, behind an append. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type Bench, startBench } from './bench.ts'
import { violationsIn } from './checker.ts'
import type { History } from './history.ts'

let bench: Bench

beforeAll(async () => {
  bench = await startBench({ apis: 1, workers: 1 })
})
afterAll(() => bench.close())

test('an API dies between the commit and its answer: the same request gets the same task', async () => {
  const { task, history } = await tellThrough('accepted=kill')
  expect(history.stored.map(({ detail }) => detail.task.id)).toEqual([task])
  const { rows } = await bench.platform.pg.query("select id from tasks where params -> 'attempts' is not null")
  expect(rows).toEqual([{ id: task }])
  expect(history.runs).toHaveLength(1)
})

test('an API dies between sending a job and noting that it did: the turn is run once', async () => {
  const { history } = await tellThrough('enqueued=kill')
  expect(history.runs).toHaveLength(1)
  expect((await bench.platform.pg.query('select from outbox')).rowCount).toBe(0)
})

test('a worker whose appends are made and yet fail says everything once, and dies when its end is stored: nothing is run again', async () => {
  await bench.workers()[0]?.kill('SIGTERM')
  const worker = await bench.startWorker({ FAILPOINTS: 'appended=throw%0.3,finish answered=kill' })
  bench.begin()
  const task = await bench.crowd.promise({ label: 'stubborn', turn: 1, words: 40, restMs: 20 })
  await bench.crowd.join(task).ended
  await worker.exited
  await bench.startWorker()
  // Its job comes back: the next worker finds that there is nothing to do, and is free for another.
  const next = await bench.crowd.promise({ label: 'next', turn: 1, words: 3, restMs: 10 })
  await bench.crowd.join(next).ended
  const history = await bench.rest()
  expect(violationsIn(history)).toEqual([])
  expect(history.runs.filter(run => run.task === task)).toHaveLength(1)
  expect(history.appends.some(({ answer }) => answer === 'duplicate')).toBe(true)
})

/** A story that is asked for at an API that dies there, while another goes on. */
async function tellThrough(failpoint: string): Promise<{ task: string; history: History }> {
  const [healthy = ''] = bench.urls
  const api = await bench.startApi(`http://127.0.0.1:${await freePort()}`, { FAILPOINTS: failpoint })
  bench.begin([api.url, healthy])
  const task = await bench.crowd.promise({ label: failpoint, turn: 1, words: 5, restMs: 20 })
  expect(await api.exited).toEqual({ code: null, signal: 'SIGKILL' })
  await bench.crowd.join(task).ended
  const history = await bench.rest()
  expect(violationsIn(history)).toEqual([])
  return { task, history }
}
