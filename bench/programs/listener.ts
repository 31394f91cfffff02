/** A bare subscriber of all logs: measures when a delta is published. */
import { Redis } from 'ioredis'
import { handleRequests } from '../child.ts'
import { now, readMarks } from '../measure/speech.ts'

const [redisUrl = '', pattern = ''] = process.argv.slice(2)
let latencies: number[] = []
const redis = new Redis(redisUrl)
redis.on('pmessage', (_pattern: string, _channel: string, message: string) => {
  const at = now()
  readMarks(message, 0, message.length, (_, sentAt) => latencies.push(at - sentAt))
})
await redis.psubscribe(pattern)

handleRequests({
  read() {
    const sorted = latencies.sort((a, b) => a - b)
    latencies = []
    const ms = (part: number) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0) / 1e3
    return { p50Ms: ms(0.5), p99Ms: ms(0.99), maxMs: ms(1) }
  },
})
process.on('SIGTERM', () => process.exit(0))
