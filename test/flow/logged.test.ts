/**
 * What goes wrong leaves one line in the log of the API that saw it, with the task and the turn, and is counted. The worker here is played by
 * the test, so that each thing happens when it is meant to.
 */
import type { Claim, ClaimResult } from '@rivulet/contract/internal'
import type { Task } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { keepHold } from '../support/keep-hold.ts'
import { metric } from '../support/platform/metrics.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import type { LogLine } from '../support/platform/platform-process.ts'
import { until } from '../support/until.ts'
import { watch } from '../support/viewers/viewer.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, env: { ...shortLease, LOG_LEVEL: 'debug' } })
  await platform.client.post('/internal/hello', { worker: 'played', agents: [{ name: 'played', description: '' }] })
})
afterAll(() => platform.close())

const info = 30
const debug = 20

test('a viewer that joins, at level debug; a log that is reopened; and the gap that its viewers receive', async () => {
  const { task, claim, claimId } = await claimed()
  keepHold(platform, 'played', holdingOf(claim))
  const before = { reopened: await metric(platform.url, 'rivulet_logs_reopened_total'), gaps: await snapshots('gap') }
  const viewers = [1, 2, 3].map(() => watch(task.id, { urls: [platform.url] }))
  await Promise.all(viewers.map(viewer => viewer.until('it has joined', ({ frames }) => frames().length > 0)))
  await until('joins are logged', () => count(linesAbout(task, 'sent a snapshot to viewers', { reason: 'join' })) === 3)
  for (const line of linesAbout(task, 'sent a snapshot to viewers')) expect(line).toMatchObject({ level: debug, turn: 1 })

  await platform.redis.del(platform.keys.stream(task.id), platform.keys.state(task.id))
  const reopened = (await ask('reopen', { turnId: claim.turn.id, epoch: claim.epoch, claimId })) as { result: string; epoch: number }
  expect(reopened).toEqual({ result: 'reopened', epoch: expect.any(Number) })
  expect(reopened.epoch).toBeGreaterThan(claim.epoch)
  keepHold(platform, 'played', { ...holdingOf(claim), epoch: reopened.epoch })
  expect(await logged(task, 'log reopened after it lost entries')).toMatchObject([{ turn: 1, epoch: reopened.epoch }])
  expect(await metric(platform.url, 'rivulet_logs_reopened_total')).toBe(before.reopened + 1)

  const isTold = ({ data }: { data: { type: string } }) => data.type === 'snapshot'
  await Promise.all(viewers.map(viewer => viewer.until('it receives the gap', ({ frames }) => frames().filter(isTold).length === 2)))
  // However many they are: it happened once.
  expect(await logged(task, 'sent a snapshot to viewers', { reason: 'gap' })).toMatchObject([{ level: info, turn: 1, viewers: 3 }])
  expect(await snapshots('gap')).toBe(before.gaps + 3)
  await Promise.all(viewers.map(viewer => viewer.stop()))
  await platform.client.cancel(task.id)
})

test('an attempt that fails and is tried again', async () => {
  const before = await metric(platform.url, 'rivulet_turn_retries_total')
  const { task, claim } = await claimed()
  keepHold(platform, 'played', holdingOf(claim))
  expect(await finish(claim, { status: 'failed', error: { code: 'agent_failed', message: 'once' } })).toEqual({ result: 'retrying' })
  expect(await logged(task, 'attempt failed; the turn will be retried')).toMatchObject([
    { turn: 1, attempt: 1, error: { message: 'once' } },
  ])
  expect(await metric(platform.url, 'rivulet_turn_retries_total')).toBe(before + 1)
  await platform.client.cancel(task.id)
})

test('a worker that dies, and what it still wants when it wakes', async () => {
  const before = {
    deaths: await metric(platform.url, 'rivulet_worker_deaths_total'),
    finish: await fenced('finish'),
    reopen: await fenced('reopen'),
    append: await fenced('append'),
  }
  const { task, claim, claimId } = await claimed()
  expect(await logged(task, 'the worker of a turn died')).toMatchObject([{ turn: 1, worker: 'played', deaths: 1 }])
  expect(await logged(task, 'reconciler repaired', { kind: 'lease' })).toMatchObject([{ level: info, turn: 1 }])
  expect(await metric(platform.url, 'rivulet_worker_deaths_total')).toBeGreaterThan(before.deaths)

  expect(await finish(claim, { status: 'completed' })).toEqual({ result: 'superseded' })
  expect(await logged(task, 'a worker tried to finish a turn that it no longer holds')).toMatchObject([{ turn: 1, epoch: claim.epoch }])
  expect(await ask('reopen', { turnId: claim.turn.id, epoch: claim.epoch, claimId })).toEqual({ result: 'superseded' })
  expect(await logged(task, 'a worker tried to reopen the log of a turn that it no longer holds')).toMatchObject([
    { turn: 1, epoch: claim.epoch },
  ])
  expect([await fenced('finish'), await fenced('reopen')]).toEqual([before.finish + 1, before.reopen + 1])
  // A worker that writes to Redis itself reports which of its writes were rejected.
  await ask('heartbeat', { worker: 'played', turns: [], fenced: 2 })
  expect(await fenced('append')).toBe(before.append + 2)
  await platform.client.cancel(task.id)
})

test('a turn that was never sent to the queue, and one whose job is lost', async () => {
  const { task, turn } = await platform.client.createTask({ agent: 'played' })
  const job = `${platform.keys.queuePrefix}:played:${turn.id}_1`
  await until('its job is there', async () => (await platform.redis.exists(job)) === 1)
  const isSent = async () => (await platform.pg.query('select from outbox')).rowCount === 0
  await until('one that was left behind is mended', async () => {
    // A process that is just sending intents may send this one too.
    if (await isSent()) await platform.pg.query('insert into outbox (turn) values ($1)', [turn.id])
    return linesAbout(task, 'reconciler repaired', { kind: 'outbox', turn: 1 }).length > 0
  })
  // What is sent from now on would bring the job back.
  await until('nothing is left to send', isSent)
  await platform.redis.del(...(await platform.redis.keys(`${platform.keys.queuePrefix}:played:*`)))
  await logged(task, 'reconciler repaired', { kind: 'job', turn: 1 })
  for (const kind of ['outbox', 'job'])
    expect(await metric(platform.url, 'rivulet_reconciler_repairs_total', { kind })).toBeGreaterThanOrEqual(1)
  await platform.client.cancel(task.id)
})

/** A turn that the test runs. */
async function claimed(): Promise<{ task: Task; claim: HeldClaim; claimId: string }> {
  const { task, turn } = await platform.client.createTask({ agent: 'played', input: 'go' })
  const claimId = crypto.randomUUID()
  const claim = await ask<ClaimResult>('claim', { worker: 'played', turnId: turn.id, claimId })
  if (claim.result !== 'claimed') throw new Error(`The turn is ${claim.result}`)
  return { task, claim: { ...claim, claimId }, claimId }
}

type HeldClaim = Claim & { claimId: string }

const holdingOf = ({ turn, epoch, claimId }: HeldClaim) => ({ turnId: turn.id, epoch, claimId })

function finish(claim: HeldClaim, outcome: object): Promise<unknown> {
  return ask('finish', { ...holdingOf(claim), outcome, n: 0, digest: '' })
}

async function ask<T = unknown>(call: string, body: object): Promise<T> {
  return (await platform.client.post<T>(`/internal/${call}`, body)).body
}

/** The lines about a task that say this, once there is one: a line takes a moment longer than an answer. */
function logged(task: Task, message: string, fields: object = {}): Promise<LogLine[]> {
  return until(`"${message}" is logged`, () => {
    const lines = linesAbout(task, message, fields)
    return lines.length > 0 && lines
  })
}

function linesAbout(task: Task, message: string, fields: object = {}): LogLine[] {
  const lines = platform.apis.flatMap(api => api.lines)
  const wanted = Object.entries({ msg: message, task: task.id, ...fields })
  return lines.filter(line => wanted.every(([name, value]) => line[name] === value))
}

function count(lines: readonly LogLine[]): number {
  return lines.reduce((sum, { viewers }) => sum + Number(viewers), 0)
}

const snapshots = (reason: string) => metric(platform.url, 'rivulet_snapshots_sent_total', { reason })
const fenced = (write: string) => metric(platform.url, 'rivulet_fenced_writes_total', { write })
