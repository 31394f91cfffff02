/** The reference server of Durable Streams, with its streams in memory, which is the faster of its two stores. */
import { DurableStreamTestServer } from '@durable-streams/server'
import { handleRequests } from '../child.ts'

const server = new DurableStreamTestServer({ port: 0, host: '127.0.0.1' })
const url = await server.start()

handleRequests({ url: () => url })
process.on('SIGTERM', () => process.exit(0))
