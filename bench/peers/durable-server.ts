/** The reference server of Durable Streams, with its streams in memory: the faster of its two ways. */
import { DurableStreamTestServer } from '@durable-streams/server'
import { answerQuestions } from '../child.ts'

const server = new DurableStreamTestServer({ port: 0, host: '127.0.0.1' })
const url = await server.start()

answerQuestions({ url: () => url })
process.on('SIGTERM', () => process.exit(0))
