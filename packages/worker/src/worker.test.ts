/** A worker on the run's Redis, and a server that is away: many turns that wait at once are nothing to warn of. */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connectRedis, createKeys, createTurnQueue } from '@rivulet/broker'
import { expect, inject, onTestFinished, test } from 'vitest'
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
    asked.set(body.turn, (asked.get(body.turn) ?? 0) + 1)
    // Away until every turn has waited twice, and so all of them have waited together.
    const areWaiting = asked.size === turnCount && [...asked.values()].every(times => times > 2)
    return areWaiting ? '{"answer":"settled"}' : null
  })
  const redisPrefix = `worker-test-${randomUUID().slice(0, 8)}`
  const agent = defineAgent('patient', async () => {})
  const worker = createWorker({ agents: [agent], redisUrl: inject('redisUrl'), url, log: silent, concurrency: turnCount, redisPrefix })
  onTestFinished(() => worker.stop())
  await enqueue(redisPrefix)
  while ([...asked.values()].filter(times => times > 2).length < turnCount) await new Promise(setImmediate)
  expect(warnings).toEqual([])
})

async function enqueue(redisPrefix: string): Promise<void> {
  const redis = connectRedis('command', { url: inject('redisUrl'), onError: () => {} })
  const queue = createTurnQueue({ redis, keys: createKeys(redisPrefix), onError: () => {} })
  const turns = Array.from({ length: turnCount }, () => ({ turn: randomUUID(), agent: 'patient', dispatch: 1, delayMs: 0, priority: 0 }))
  await queue.enqueue(turns)
  await queue.close()
  redis.disconnect()
}

/** A server that gives these answers, or 503 for null. */
async function serve(answer: (call: string, body: { turn: string }) => string | null): Promise<string> {
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const given = answer(request.url?.split('/').at(-1) ?? '', JSON.parse(Buffer.concat(parts).toString()))
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
