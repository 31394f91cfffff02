/**
 * Crashes in the midst of a step that is not one step: between a commit and its answer, between the queue and the outbox, behind an append.
 * Each place with each kind of crash is tried on demand (`demand/failpoints.test.ts`); these are what every run has time for.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Bench, startBench } from './bench.ts'
import { tellThrough } from './crash-point.ts'

let bench: Bench

beforeAll(async () => {
  // A turn that is run twice would be a fault here, so no lease may end while the machine is busy.
  bench = await startBench({ apis: 1, workers: 0, env: { LEASE_MS: '20000' } })
})
afterAll(() => bench.close())

test('an API dies between the commit and its answer: the same request gets the same task', async () => {
  const { task, history } = await tellThrough(bench, ['accepted=kill'])
  expect(history.stored.map(({ detail }) => detail.task.id)).toEqual([task])
  const { rows } = await bench.platform.pg.query("select id from tasks where params -> 'attempts' is not null")
  expect(rows).toEqual([{ id: task }])
  expect(history.runs).toHaveLength(1)
})

test('an API dies between sending a job and noting that it did: the turn is run once', async () => {
  const { history } = await tellThrough(bench, ['enqueued=kill'])
  expect(history.runs).toHaveLength(1)
  expect((await bench.platform.pg.query('select from outbox')).rowCount).toBe(0)
})

test('an API does each of its steps, and then fails: the turn is run once', async () => {
  const steps = ['enqueued', 'claimed', 'folded', 'committed', 'answering'] as const
  const { history } = await tellThrough(
    bench,
    steps.map(step => `${step}=throw` as const),
  )
  expect(new Set(history.runs.map(({ epoch }) => epoch)).size).toBe(1)
})

test('an API is slow at each of its steps, and a worker at each of its own, while others go on: the turn is run once', async () => {
  const steps = ['enqueued', 'claimed', 'folded', 'committed', 'announced', 'answering', 'claim answered', 'appending', 'appended'] as const
  const { history } = await tellThrough(
    bench,
    steps.map(step => `${step}=delay:300` as const),
  )
  expect(history.runs).toHaveLength(1)
})

test('a worker whose appends are made and yet fail says everything once, and dies when its end is stored: nothing is run again', async () => {
  const { task, history } = await tellThrough(bench, ['appended=throw%0.3', 'finish answered=kill'])
  expect(history.runs).toHaveLength(1)
  expect(history.appends.some(({ result }) => result === 'duplicate')).toBe(true)
  // Its job comes back: the next worker finds that there is nothing to do, and is free for another.
  const next = await tellThrough(bench, ['appending=throw%0.3'])
  expect(next.history.runs).toHaveLength(1)
  const { rows } = await bench.platform.pg.query('select attempt, status from turns where task = $1', [task])
  expect(rows).toEqual([{ attempt: 1, status: 'completed' }])
})
