/** Opens an event stream as the response to a request, and connects it with the source of its events. */
import type { TaskId } from '@rivulet/protocol'
import type { FastifyReply } from 'fastify'
import type { Admission, StreamEnd } from '../access/open-streams.ts'
import type { SseWriter, SseWriters } from '../stream/sse-writer.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { countRequest } from './http-metrics.ts'

/** The source of the events of an open response. */
type EventProducer = StreamEnd & {
  /** The socket has room again. */
  drained(): void
  /** The connection is closed. */
  gone(): void
}

/** The end of the response is the end of its connection, so a client must not keep the connection for another request. */
const ownHeaders = { connection: 'close' }

type EventResponse = {
  admission: Admission
  metrics: Metrics
  writers: SseWriters
  headers?: Record<string, string>
  /** For logs. */
  task?: TaskId
}

/** @param start begins to write, in one step with the place that it writes from. Not called for a client that has left. */
export async function respondWithEvents(
  reply: FastifyReply,
  { admission, metrics, writers, headers = ownHeaders, task }: EventResponse,
  start: (response: SseWriter) => EventProducer,
): Promise<FastifyReply> {
  let producer: EventProducer | null = null
  reply.hijack()
  const given = Object.fromEntries(Object.entries(reply.getHeaders()).map(([name, value]) => [name, String(value)]))
  const response = await writers.open(
    reply.raw,
    { ...given, ...headers },
    {
      onDrain: () => producer?.drained(),
      onClose: () => {
        producer?.gone()
        admission.over()
      },
      onCut: () => {
        metrics.cutViewers.inc()
        reply.log.info({ ...(task && { task }) }, 'closed a viewer that read nothing')
      },
    },
  )
  if (!response) {
    admission.over()
    return reply
  }
  countRequest(metrics, reply.request, 200)
  producer = start(response)
  admission.opened(producer)
  return reply
}
