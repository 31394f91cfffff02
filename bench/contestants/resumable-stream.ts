/** resumable-stream with node-redis: the agent's process publishes to each listener, the viewers' process resumes. */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { startChild } from '../child.ts'
import type { Contestant, Start, World } from '../contestant.ts'
import { requestFor } from '../crowd.ts'
import type { Plan } from '../measure/speech.ts'

export const resumableStream: Start = { name: 'resumable-stream', start }

async function start({ redisUrl, redisPid }: World): Promise<Contestant> {
  await liftSubscriberLimit(redisUrl)
  const env = { REDIS_URL: redisUrl }
  const [server, speaker] = await Promise.all([
    startChild('peers/resumable-server.ts', { env }),
    startChild('peers/resumable-speaker.ts', { env }),
  ])
  const url = `http://127.0.0.1:${await server.ask<number>('port')}`
  return {
    name: resumableStream.name,
    pids: { server: () => [server.pid], speaker: () => [speaker.pid], ...(redisPid && { redis: () => [redisPid] }) },
    prepare,
    close: async () => void (await Promise.all([server.stop(), speaker.stop()])),
  }

  async function prepare(plan: Plan) {
    const streams = Array.from({ length: plan.tasks }, () => randomUUID())
    await speaker.ask('prepare', { plan, streams })
    return {
      requests: streams.map(stream => requestFor(url, `/${stream}`)),
      speak: () => speaker.ask<void>('speak'),
      clear: () => speaker.ask<void>('end'),
    }
  }
}

/** All late viewers receive the backlog through one subscriber; with its default limit of 32 MB, Redis would close that connection. */
async function liftSubscriberLimit(redisUrl: string): Promise<void> {
  const redis = new Redis(redisUrl)
  await redis.config('SET', 'client-output-buffer-limit', 'pubsub 0 0 0')
  redis.disconnect()
}
