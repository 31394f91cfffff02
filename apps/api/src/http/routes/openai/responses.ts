/**
 * OpenAI's Responses API, below `/openai/v1`: a model is an agent, a response is a turn, a conversation is a task.
 *
 * A response goes on when its caller leaves. It can be streamed from its beginning or after a sequence number, read, and canceled, by any caller
 * that may read the task.
 */
import { agentNameSchema, createTaskBody, hasEnded, type Message, RivuletError, type Turn, taskIdSchema } from '@rivulet/protocol'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { orGiveBack } from '../../../access/open-streams.ts'
import { mayRead } from '../../../access/principal.ts'
import { turnMessagesNow } from '../../../log/live-messages.ts'
import { getTask } from '../../../store/reads/tasks.ts'
import { getTurn } from '../../../store/reads/turns.ts'
import { removeOnlyTurn } from '../../../store/tasks/remove-task.ts'
import { openAiResponses } from '../../../stream/dialects/openai/openai-responses.ts'
import { maxSequenceNumber, parseResponseId, placeOfNumber, type ResponseId } from '../../../stream/dialects/openai/response-id.ts'
import { headOf, type OpenAiResponse, storedResponse } from '../../../stream/dialects/openai/response-object.ts'
import { createAcceptTurn, type WantedTurn } from '../../requests/accept-turn.ts'
import { createTurnResults } from '../../requests/turn-result.ts'
import type { Services } from '../../services.ts'
import type { EventStream } from '../tasks/events.ts'
import { type CreateResponse, createResponseBody, paramsOf, rejectUnsupported } from './openai-bodies.ts'
import { conversationOf, messagesOfItems, wrong } from './openai-input.ts'

const params = z.object({ id: z.string().max(100) })
const reading = { access: { scope: 'tasks:read' } } as const
const writing = { access: { scope: 'tasks:write' } } as const
const creating = { ...writing, addsWork: true } as const
const tags = ['openai']
const anyObject = z.looseObject({ id: z.string(), object: z.string() })
const objectOrStream = { description: 'The object, or its events', content: { 'application/json': { schema: anyObject } } }
const truth = z.enum(['true', 'false']).optional()
const streamQuery = z.object({
  stream: truth,
  starting_after: z
    .string()
    .regex(/^\d{1,16}$/)
    .optional(),
})

export function responseRoutes(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { databaseFor, reader, ending, relay, announcer } = services
  const { requireShare, accept } = createAcceptTurn(services, scope.log)
  const results = createTurnResults(services)
  const app = scope.withTypeProvider<ZodTypeProvider>()

  app.post(
    '/responses',
    { config: creating, schema: { tags, body: createResponseBody, response: { 200: objectOrStream } } },
    async (request, reply) => {
      const { body } = request
      rejectUnsupported(body)
      const wanted = wantedTurn(body)
      await requireShare(request)
      const isWaiting = Boolean(body.stream) || !body.background
      const admission = isWaiting ? events.reserve(request) : null
      const { task, turn, dispatch } = await orGiveBack(admission, accept(request, reply, wanted))
      const id: ResponseId = { task: task.id, turnNumber: turn.number, segment: 1 }
      if (!admission) {
        dispatch()
        return visible(request, storedResponse(task, turn, []))
      }
      if (!body.stream) {
        dispatch()
        return results.send(reply, { ...id, admission, read: async () => ({ body: await readResponse(request, id) }) })
      }
      const dialect = openAiResponses({ head: headOf(task, turn), after: null, read: () => readEnded(request, id) })
      return events
        .stream(task.id, reply, { cursor: 'log', isFollowing: true, dialect, turnNumber: turn.number }, admission)
        .finally(dispatch)
    },
  )

  app.get(
    '/responses/:id',
    { config: reading, exposeHeadRoute: false, schema: { tags, params, querystring: streamQuery, response: { 200: objectOrStream } } },
    async (request, reply) => {
      const id = idOf(request.params.id)
      if (request.query.stream !== 'true') return readResponse(request, id)
      const after = numberOf(request.query.starting_after)
      const { task, turn } = await readTurn(request, id)
      const place = after === null ? null : placeOfNumber(after)
      const dialect = openAiResponses({ head: headOf(task, turn), after, read: () => readEnded(request, id) })
      const cursor = place === null ? 'log' : place.isAfterGap ? null : place.cursor
      return events.stream(id.task, reply, { cursor, isFollowing: true, dialect, turnNumber: id.turnNumber })
    },
  )

  app.post(
    '/responses/:id/cancel',
    { config: writing, schema: { tags, params, body: z.looseObject({}).nullish(), response: { 200: anyObject } } },
    async request => {
      const id = idOf(request.params.id)
      await readTurn(request, id)
      await ending.cancelTurn(request.principal.tenant, id.task, id.turnNumber)
      relay.kick()
      return visible(request, await readResponse(request, id))
    },
  )

  app.delete(
    '/responses/:id',
    { config: writing, schema: { tags, params, response: { 200: anyObject.extend({ deleted: z.literal(true) }) } } },
    async request => {
      const id = idOf(request.params.id)
      await readTurn(request, id)
      const { tenant } = request.principal
      await removeOnlyTurn(databaseFor(tenant), tenant, id.task, id.turnNumber)
      await announcer.remove(id.task).catch(() => {})
      return { id: request.params.id, object: 'response', deleted: true as const }
    },
  )

  app.get(
    '/responses/:id/input_items',
    { config: reading, schema: { tags, params, response: { 200: z.looseObject({ object: z.literal('list') }) } } },
    async request => {
      const id = idOf(request.params.id)
      const { turn } = await readTurn(request, id)
      const said = (await messagesOf(request, id)).filter(({ author }) => author === 'user')
      const data = said.length > 0 ? said.map(inputItem) : queuedInput(turn)
      return { object: 'list' as const, data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: false }
    },
  )

  async function readTurn({ principal: { tenant } }: FastifyRequest, { task, turnNumber }: ResponseId) {
    const db = databaseFor(tenant)
    return { task: await getTask(db, tenant, task), turn: await getTurn(db, tenant, task, turnNumber) }
  }

  function messagesOf({ principal: { tenant } }: FastifyRequest, { task, turnNumber }: ResponseId): Promise<Message[]> {
    return turnMessagesNow(databaseFor(tenant), reader, tenant, task, turnNumber)
  }

  async function readResponse(request: FastifyRequest, id: ResponseId): Promise<OpenAiResponse> {
    const { task, turn } = await readTurn(request, id)
    return storedResponse(task, turn, await messagesOf(request, id))
  }

  async function readEnded(request: FastifyRequest, id: ResponseId): Promise<OpenAiResponse | null> {
    const { turn } = await readTurn(request, id)
    return hasEnded(turn.status) ? readResponse(request, id) : null
  }
}

function wantedTurn(body: CreateResponse): WantedTurn {
  const { model, metadata, conversation, instructions, max_output_tokens, max_tool_calls, temperature, top_p, reasoning } = body
  if (!agentNameSchema.safeParse(model).success) throw new RivuletError('unknown_agent', 'No agent has this name')
  const messages = typeof body.input === 'string' ? [{ role: 'user' as const, content: body.input }] : body.input
  const { history, input } = conversationOf(messagesOfItems(messages), 'input')
  const named = { instructions, max_output_tokens, max_tool_calls, temperature, top_p, reasoning }
  const previous = body.previous_response_id ? idOf(body.previous_response_id) : null
  const task = previous?.task ?? (conversation ? taskIdSchema.safeParse(nameOf(conversation)).data : undefined)
  if (task === undefined) {
    const given = { ...(history.length > 0 && { history }), ...(metadata && { metadata }), params: paramsOf(body.params, named) ?? null }
    const name = conversation ? { name: nameOf(conversation) } : {}
    return { of: 'new task', body: { ...createTaskBody.parse({ agent: model, ...name }), input, ...given } }
  }
  if (history.length > 0) throw wrong('input', 'The conversation has a history; send one message of the user with one content')
  return { of: 'task', task, agent: model, after: previous?.turnNumber, input, params: paramsOf(body.params, named) }
}

function nameOf(conversation: NonNullable<CreateResponse['conversation']>): string {
  const name = typeof conversation === 'string' ? conversation : conversation.id
  if (name.length < 1 || name.length > 200) throw wrong('conversation', 'A conversation has an id, or a name of 1 to 200 characters')
  return name
}

function idOf(text: string): ResponseId {
  const id = parseResponseId(text)
  if (id?.segment !== 1) throw new RivuletError('task_not_found', 'No such response')
  return id
}

function numberOf(text: string | undefined): number | null {
  if (text === undefined) return null
  const number = Number(text)
  if (number > maxSequenceNumber) throw wrong('starting_after', 'It is not a sequence_number of this response')
  return number
}

/** A caller that may change but not read a task gets the state of the response, and none of its contents. */
function visible({ principal }: FastifyRequest, response: OpenAiResponse): OpenAiResponse {
  return mayRead(principal) ? response : { ...response, output: [], metadata: {}, instructions: null, usage: null, error: null }
}

function inputItem({ task, index, content }: Message) {
  return { id: `msg_${task}.${index}.0`, type: 'message', role: 'user', status: 'completed', content: [partOf(content)] }
}

/** Of a turn that has not started: its input is not a message yet. */
function queuedInput({ id, input }: Turn) {
  return input ? [{ id: `msg_${id}`, type: 'message', role: 'user', status: 'completed', content: [partOf(input)] }] : []
}

function partOf(content: Message['content']): object {
  switch (content.type) {
    case 'text':
      return { type: 'input_text', text: content.text }
    case 'media': {
      const url = content.url ?? `data:${content.mimeType};base64,${content.data ?? ''}`
      return content.mimeType.startsWith('image/')
        ? { type: 'input_image', image_url: url, detail: 'auto' }
        : { type: 'input_file', file_url: url }
    }
    case 'reasoning':
    case 'tool_request':
    case 'tool_response':
    case 'data':
      return { type: 'input_text', text: JSON.stringify(content) }
    default:
      return content satisfies never
  }
}
