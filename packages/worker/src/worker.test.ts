/** A worker on the run's Redis, and a server that is unavailable or slow. */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connectRedis, createKeys, createLogAnnouncer, createTurnQueue, whenReady } from '@rivulet/broker'
import type { Claim } from '@rivulet/contract/internal'
import { defaultLimits } from '@rivulet/protocol'
import { expect, inject, onTestFinished, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { defineAgent } from './define-agent.ts'
import type { Logger } from './logger.ts'
import { createWorker } from './worker.ts'

const turnCount = 40

test('any number of turns may wait for the server together', async () => {
  const warnings: Error[] = []
  const onWarning = (warning: Error) => warnings.push(warning)
  process.on('warning', onWarning)
  onTestFinished(() => void process.off('warning', onWarning))

  const asked = new Map<string, number>()
  const url = await serve((call, body) => {
    if (call === 'hello') return '{}'
    if (call === 'heartbeat') return '{"lost":[]}'
    asked.set(body.turnId, (asked.get(body.turnId) ?? 0) + 1)
    // Away until every turn has waited twice, and so all of them have waited together.
    const areWaiting = asked.size === turnCount && [...asked.values()].every(times => times > 2)
    return areWaiting ? '{"result":"settled"}' : null
  })
  const redisPrefix = `worker-test-${randomUUID().slice(0, 8)}`
  const agent = defineAgent('patient', async () => {})
  const worker = createWorker({ agents: [agent], redisUrl: inject('redisUrl'), url, log: silent, concurrency: turnCount, redisPrefix })
  onTestFinished(() => worker.stop())
  await enqueue(redisPrefix)
  while ([...asked.values()].filter(times => times > 2).length < turnCount) await new Promise(setImmediate)
  expect(warnings).toEqual([])
})

test('the id of a worker begins with its name, and does not name its machine, because tenants see it', async () => {
  const url = await serve(() => '{}')
  const start = (name?: string) => {
    const worker = createWorker({ agents: [defineAgent('idle', async () => {})], redisUrl: inject('redisUrl'), url, log: silent, name })
    onTestFinished(() => worker.stop())
    return worker.id
  }
  expect(start()).toMatch(/^worker-\d+-[0-9a-f]{8}$/)
  expect(start('pod-7d9')).toMatch(/^pod-7d9-\d+-[0-9a-f]{8}$/)
})

test('a refused write is reported by one beat, also where the next begins before that one is answered', async () => {
  const reported: number[] = []
  const held: (() => void)[] = []
  const url = await serve(async (call, body) => {
    if (call === 'claim') return JSON.stringify(claimOf(body.turnId))
    if (call !== 'heartbeat') return '{}'
    reported.push(body.fenced)
    const isWaitedFor = body.fenced !== 0 || held.length === 1
    if (isWaitedFor && held.length < 2) await new Promise<void>(resolve => held.push(resolve))
    return '{"lost":[]}'
  })
  const redisPrefix = `worker-test-${randomUUID().slice(0, 8)}`
  const agent = defineAgent('patient', async turn => void (await turn.send('too late')))
  const worker = createWorker({ agents: [agent], redisUrl: inject('redisUrl'), url, log: silent, heartbeatMs: 20, redisPrefix })
  onTestFinished(() => worker.stop())
  await raiseLog(redisPrefix)
  await enqueue(redisPrefix, 1)
  await until('two beats wait for their answer', () => held.length === 2)
  for (const respond of held) respond()
  const replied = reported.length
  await until('others have followed', () => reported.length > replied + 2)
  expect(reported.filter(fenced => fenced !== 0)).toEqual([1])
})

const task = randomUUID()

/** By another worker that has claimed a turn of this task since. */
async function raiseLog(redisPrefix: string): Promise<void> {
  const redis = connectRedis('command', { url: inject('redisUrl'), onError: () => {} })
  await whenReady(redis)
  await createLogAnnouncer({ redis, keys: createKeys(redisPrefix), retentionMs: 60_000 }).announce({ task, epoch: 3, entries: [] })
  redis.disconnect()
}

function claimOf(turnId: string): Claim {
  const now = new Date().toISOString()
  const run = { attempt: 1, status: 'running', createdAt: now, updatedAt: now, queuedAt: now } as const
  return {
    ...{
      result: 'claimed',
      epoch: 2,
      attempt: 1,
      input: null,
      firstIndex: 0,
      deadline: now,
      timeLeftMs: 60_000,
      isolated: false,
      steps: [],
      kept: [],
    },
    task: { ...run, id: task, agent: 'patient', params: null, metadata: {} },
    turn: { ...run, id: turnId, task, number: 1 },
    limits: defaultLimits,
    isOverBudget: false,
  }
}

async function enqueue(redisPrefix: string, count = turnCount): Promise<void> {
  const redis = connectRedis('command', { url: inject('redisUrl'), onError: () => {} })
  const queue = createTurnQueue({ redis, keys: createKeys(redisPrefix), onError: () => {} })
  const turns = Array.from({ length: count }, () => ({ turnId: randomUUID(), agent: 'patient', dispatch: 1, delayMs: 0, priority: 0 }))
  await queue.enqueue(turns)
  await queue.close()
  redis.disconnect()
}

/** A server that returns these responses, or 503 for null. */
async function serve(
  respond: (call: string, body: { turnId: string; fenced: number }) => string | null | Promise<string>,
): Promise<string> {
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const given = await respond(request.url?.split('/').at(-1) ?? '', JSON.parse(Buffer.concat(parts).toString()))
    response.writeHead(given === null ? 503 : 200)
    response.end(given ?? '{"error":{"code":"dependency_unavailable","message":"not now"}}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
