/** A worker program of one's own. */
import { openTelemetryTracer } from '@rivulet/runtime/open-telemetry'
import { createWorker } from '@rivulet/worker'
import built from './built.js'

const { REDIS_URL: redisUrl = '', RIVULET_URL: url = '' } = process.env
const worker = createWorker({ agents: [built], redisUrl, url, tracer: openTelemetryTracer() })
process.on('SIGINT', () => void worker.stop().then(() => process.exit(0)))
