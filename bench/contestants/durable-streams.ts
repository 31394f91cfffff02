/** Durable Streams: an agent that appends over HTTP, and a server that stores the streams and serves them as SSE. */
import { randomUUID } from 'node:crypto'
import { startChild } from '../child.ts'
import type { Contestant, Start } from '../contestant.ts'
import { requestFor } from '../crowd.ts'
import type { Plan } from '../measure/speech.ts'

export const durableStreams: Start = { name: 'durable-streams server', start }

async function start(): Promise<Contestant> {
  const [server, speaker] = await Promise.all([startChild('peers/durable-server.ts'), startChild('peers/durable-speaker.ts')])
  const base = await server.ask<string>('url')
  return {
    name: durableStreams.name,
    isSlow: true,
    pids: { server: () => [server.pid], speaker: () => [speaker.pid] },
    prepare,
    close: async () => void (await Promise.all([server.stop(), speaker.stop()])),
  }

  async function prepare(plan: Plan) {
    const paths = Array.from({ length: plan.tasks }, () => `/bench/${randomUUID()}`)
    const urls = paths.map(path => base + path)
    await speaker.ask('prepare', urls)
    return {
      requests: paths.map(path => requestFor(base, `${path}?offset=-1&live=sse`)),
      speak: () => speaker.ask<void>('speak', { plan, urls }),
      clear: () => speaker.ask<void>('remove', urls),
    }
  }
}
