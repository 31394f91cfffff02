/** The simplest implementation: an awaited XADD for each token, and a connection with a blocking XREAD for each viewer. */
import { randomUUID } from 'node:crypto'
import { startChild } from '../child.ts'
import type { Contestant, Start, World } from '../contestant.ts'
import { requestFor } from '../crowd.ts'
import type { Plan } from '../measure/speech.ts'

export const straightforward: Start = { name: 'the straightforward way', start }

async function start({ redisUrl, redisPid }: World): Promise<Contestant> {
  const [server, speaker] = await Promise.all([
    startChild('programs/straightforward-server.ts', { args: [redisUrl] }),
    startChild('programs/straightforward-speaker.ts', { args: [redisUrl] }),
  ])
  const url = `http://127.0.0.1:${await server.ask<number>('port')}`
  return {
    name: straightforward.name,
    pids: { server: () => [server.pid], speaker: () => [speaker.pid], ...(redisPid && { redis: () => [redisPid] }) },
    prepare,
    close: async () => void (await Promise.all([server.stop(), speaker.stop()])),
  }

  async function prepare(plan: Plan) {
    const streams = Array.from({ length: plan.tasks }, () => randomUUID())
    return {
      requests: streams.map(stream => requestFor(url, `/${stream}`)),
      speak: () => speaker.ask<void>('speak', { plan, streams }),
      clear: () => speaker.ask<void>('remove', streams),
    }
  }
}
