/** The worker of the straightforward way: one XADD for each token, and the next after its reply. */
import { Redis } from 'ioredis'
import { handleRequests } from '../child.ts'
import { eventOf, type Plan, speak } from '../measure/speech.ts'

const redis = new Redis(process.argv[2] ?? '')
process.on('SIGTERM', () => {
  redis.disconnect()
  process.exit(0)
})

handleRequests({
  speak: ({ plan, streams }: { plan: Plan; streams: string[] }) => Promise.all(streams.map((stream, task) => send(plan, stream, task))),
  remove: async (streams: string[]) => void (streams.length > 0 && (await redis.unlink(...streams))),
})

async function send(plan: Plan, stream: string, task: number): Promise<void> {
  for await (const { number, text } of speak(plan, task)) await redis.xadd(stream, '*', 'event', eventOf(stream, number, text))
}
