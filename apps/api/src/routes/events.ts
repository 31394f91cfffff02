/** Subscribing: what a viewer asks for, and its open response. */
import { type Cursor, origin, parseCursor, RivuletError, taskIdSchema } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { type AiSdkResponse, aiSdkHeaders, openAiSdkStream, speakAiSdk } from '../ai-sdk-response.ts'
import type { Watching } from '../hub.ts'
import type { Services } from '../services.ts'
import { openSse } from '../sse-response.ts'
import { getTask, hasTurn } from '../store/read.ts'
import { findPlace, type Wish } from '../viewer-place.ts'

/** What a stream speaks; without it, our own events. `ai-sdk` is the UI message stream of the Vercel AI SDK, of one turn. */
export const streamFormat = z.literal('ai-sdk').optional()

const query = z
  .strictObject({
    after: z.string().optional(),
    from: z.literal('start').optional(),
    follow: z.enum(['true', 'false']).optional(),
    format: streamFormat,
    turn: z
      .string()
      .regex(/^[1-9]\d{0,8}$/, 'A turn has a number, from 1')
      .optional(),
  })
  .refine(({ format, follow }) => format === undefined || follow !== 'true', {
    path: ['follow'],
    message: 'A stream of this format ends with its turn',
  })
  .refine(({ format, turn }) => format !== undefined || turn === undefined, {
    path: ['turn'],
    message: 'Our own events are those of the whole task',
  })

export type EventStream = ReturnType<typeof createEventStream>

/** The turn is the one that the AI SDK is told of; default: the first that has not ended. */
type Tongue = { format?: z.output<typeof streamFormat>; turn?: number | undefined }

/** Answers a request with a task's event stream. */
export function createEventStream({ db, hub, reader, isDraining }: Services) {
  return { stream, wants, checkTurn }

  async function checkTurn(task: string, turn: number): Promise<void> {
    await getTask(db, task)
    if (!(await hasTurn(db, task, turn))) throw new RivuletError('not_found', `This task has no turn ${turn}`)
  }

  function wants(request: FastifyRequest): boolean {
    return (request.headers.accept ?? '').includes('text/event-stream')
  }

  async function stream(task: string, reply: FastifyReply, wish: Wish & Tongue): Promise<FastifyReply> {
    if (isDraining()) throw new RivuletError('draining', 'This process is stopping')
    if (!hub.isRunning(task)) await getTask(db, task)
    const place = await findPlace(hub, reader, task, wish)
    if (!place) return reply.status(204).send()
    const aiSdk = wish.format && (await openAiSdkStream(reader, { task, turn: wish.turn, begin: place.begin }))

    reply.hijack()
    let watching: Watching | null = null
    const headers = Object.fromEntries(Object.entries(reply.getHeaders()).map(([name, value]) => [name, String(value)]))
    let spoken: AiSdkResponse | null = null
    const response = await openSse(reply.raw, aiSdk ? { ...headers, ...aiSdkHeaders } : headers, {
      onDrain: () => (spoken?.drained() ?? true) && watching?.drained(),
      onClose: () => watching?.gone(),
    })
    if (!response) return reply
    if (aiSdk) spoken = speakAiSdk(response, aiSdk)
    watching = hub.watch(place.feed, spoken ?? response, { begin: place.begin, isFollowing: wish.isFollowing })
    return reply
  }
}

export function eventRoutes(scope: FastifyInstance, events: EventStream): void {
  const app = scope.withTypeProvider<ZodTypeProvider>()
  const params = z.object({ id: taskIdSchema })
  // A HEAD would get a body: the stream is written past Node's response object.
  const options = { exposeHeadRoute: false, schema: { tags: ['tasks'], params, querystring: query } }
  app.get('/tasks/:id/events', options, async (request, reply) => {
    const { accept } = request.headers
    if (accept !== undefined && !/text\/event-stream|text\/\*|\*\/\*/.test(accept)) {
      throw new RivuletError('not_acceptable', 'This answers text/event-stream')
    }
    const { after, from, follow, format } = request.query
    const cursor = cursorOf(request.headers['last-event-id'], after) ?? (from === 'start' ? origin : null)
    const turn = request.query.turn === undefined ? undefined : Number(request.query.turn)
    if (turn !== undefined) await events.checkTurn(request.params.id, turn)
    return events.stream(request.params.id, reply, { cursor, isFollowing: follow === 'true', format, turn })
  })
}

/** `Last-Event-ID` counts before `?after=`. */
function cursorOf(header: string | string[] | undefined, after: string | undefined): Cursor | null {
  const given = header ?? after
  if (given === undefined) return null
  const cursor = typeof given === 'string' ? parseCursor(given) : null
  if (cursor === null) throw new RivuletError('bad_cursor', 'A cursor is <epoch>-<seq>, two whole numbers')
  return cursor
}
