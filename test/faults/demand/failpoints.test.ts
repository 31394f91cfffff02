/**
 * Every failpoint there is, with everything that can happen there: the story reaches its end, and no promise is broken. A failpoint before an
 * action that throws means that it was not done, one behind it that it was, and its caller does not know.
 */
import { type Failpoint, failpoints } from '@rivulet/runtime/failpoint'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient } from '../../support/platform/platform-client.ts'
import { until } from '../../support/until.ts'
import { type Bench, startBench } from '../bench.ts'
import { type Disturbance, tellThrough } from '../crash-point.ts'

/** Longer than a lease, and shorter. */
const kinds = ['kill', 'throw', 'stall:4000', 'delay:1000']

/** These are passed only when something else goes wrong. */
const notOnTheWay: Partial<Record<Failpoint, Disturbance>> = {
  ...{ seized: cancel, fenced: cancel, reopened: wipe, 'feed opened': join, 'file begun': upload, 'file written': upload },
}

let bench: Bench

beforeAll(async () => {
  bench = await startBench({ apis: 1, workers: 0 })
})
afterAll(() => bench.close())

describe.each(failpoints)('at "%s"', failpoint => {
  test.each(kinds)('%s', { timeout: 180_000 }, async kind => {
    const { history } = await tellThrough(bench, [`${failpoint}=${kind}`], notOnTheWay[failpoint])
    const [turn] = history.stored[0]?.detail.turns ?? []
    if (notOnTheWay[failpoint] !== cancel) expect(turn?.status).toBe('completed')
    // No process was stopped for as long as a lease.
    if (kind.startsWith('delay')) expect(turn?.attempt).toBe(1)
  })
})

/** At the API that has the trap; again, wherever it is answered. */
async function cancel({ crowd }: Bench, task: string, url: string): Promise<void> {
  await createClient(() => url)
    .post(`/v1/tasks/${task}/cancel`, {})
    .catch(() => null)
  await crowd.cancel(task)
}

/** One viewer more at each API. */
async function join({ crowd }: Bench, task: string): Promise<void> {
  for (let i = 0; i < 2; i += 1) crowd.join(task)
}

async function wipe({ noteLoss, server }: Bench): Promise<void> {
  noteLoss()
  await server.client.flushall()
}

/** At the API that has the trap, again until it responds. What was stored can be read. */
async function upload(_: Bench, __: string, url: string): Promise<void> {
  const headers = { 'content-type': 'text/plain' }
  const stored = await until('a file is stored', async () => {
    const response = await fetch(`${url}/v1/files`, { method: 'POST', headers, body: 'some text' }).catch(() => null)
    return response?.status === 201 && ((await response.json()) as { file: { id: string } }).file
  })
  await until('the file is read', async () => {
    const response = await fetch(`${url}/v1/files/${stored.id}`).catch(() => null)
    return (await response?.text()) === 'some text'
  })
}
