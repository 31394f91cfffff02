import type { Start } from '../contestant.ts'
import { bareResponse, bareSocket } from './bare.ts'
import { durableStreams } from './durable-streams.ts'
import { langgraph } from './langgraph.ts'
import { nchan } from './nchan.ts'
import { resumableStream } from './resumable-stream.ts'
import { rivulet } from './rivulet.ts'
import { straightforward } from './straightforward.ts'

/** The contestants that need only the main install. */
export const limits: Start[] = [bareSocket, bareResponse, rivulet, straightforward]

export const peers: Start[] = [nchan, resumableStream, durableStreams, langgraph]
