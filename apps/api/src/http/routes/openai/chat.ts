/** OpenAI's older API, below `/openai/v1`: chat completions, and the agents as models. */
import { agentNameSchema, createTaskBody, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { orGiveBack } from '../../../access/open-streams.ts'
import { listAgents } from '../../../store/agents/agents.ts'
import { turnMessages } from '../../../store/reads/messages.ts'
import { getTurn } from '../../../store/reads/turns.ts'
import { chatCompletion, openAiChat } from '../../../stream/dialects/openai/chat-completion.ts'
import { headOf } from '../../../stream/dialects/openai/response-object.ts'
import { firstSegment } from '../../../stream/dialects/openai/segment.ts'
import { createAcceptTurn, type WantedTurn } from '../../requests/accept-turn.ts'
import { createTurnResults, type Result } from '../../requests/turn-result.ts'
import type { Services } from '../../services.ts'
import type { EventStream } from '../tasks/events.ts'
import { type ChatCompletion, chatCompletionBody, paramsOf, rejectUnsupportedChat } from './openai-bodies.ts'
import { conversationOf, messagesOfChat } from './openai-input.ts'

const tags = ['openai']
const anyObject = z.looseObject({ id: z.string(), object: z.string() })
const objectOrStream = { description: 'The object, or its chunks', content: { 'application/json': { schema: anyObject } } }

export function chatRoutes(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { databaseFor } = services
  const { requireShare, accept } = createAcceptTurn(services, scope.log)
  const results = createTurnResults(services)
  const app = scope.withTypeProvider<ZodTypeProvider>()
  const config = { access: { scope: 'tasks:write', ofAgents: true }, addsWork: true } as const

  app.post(
    '/chat/completions',
    { config, schema: { tags, body: chatCompletionBody, response: { 200: objectOrStream } } },
    async (request, reply) => {
      const { body } = request
      const { tenant } = request.principal
      rejectUnsupportedChat(body)
      const wanted = wantedTurn(body)
      await requireShare(request)
      const admission = events.reserve(request)
      const { task, turn, dispatch } = await orGiveBack(admission, accept(request, reply, wanted))
      const head = headOf(task, turn, firstSegment)
      if (body.stream) {
        const dialect = openAiChat(head, { includesUsage: body.stream_options?.include_usage === true })
        return events
          .stream(task.id, reply, { cursor: 'log', isFollowing: true, dialect, turnNumber: turn.number }, admission)
          .finally(dispatch)
      }
      dispatch()
      return results.send(reply, { task: task.id, turnNumber: turn.number, admission, read })

      async function read(): Promise<Result> {
        const db = databaseFor(tenant)
        const ended = await getTurn(db, tenant, task.id, turn.number)
        const completion = chatCompletion(head, ended, await turnMessages(db, tenant, task.id, turn.number))
        if (completion) return { body: completion }
        // Another try of the same request would be another turn.
        reply.header('x-should-retry', 'false')
        const { code, message } = ended.error ?? { code: ended.status, message: `The turn has ${ended.status}` }
        return { status: 500, body: { error: { code, message, type: 'server_error', param: null, requestId: request.id } } }
      }
    },
  )
}

export function modelRoutes(scope: FastifyInstance, { databaseFor, config: { leaseMs } }: Services): void {
  const app = scope.withTypeProvider<ZodTypeProvider>()
  const config = { access: { scope: 'tasks:read', ofAgents: true } } as const
  const model = z.object({ id: z.string(), object: z.literal('model'), created: z.int(), owned_by: z.string() })

  app.get(
    '/models',
    { config, schema: { tags, response: { 200: z.object({ object: z.literal('list'), data: z.array(model) }) } } },
    async ({ principal }) => ({
      object: 'list' as const,
      data: (await listAgents(databaseFor(principal), principal.tenant, leaseMs)).map(modelOf),
    }),
  )

  app.get(
    '/models/:model',
    { config, schema: { tags, params: z.object({ model: z.string() }), response: { 200: model } } },
    async ({ params, principal }) => {
      const agent = (await listAgents(databaseFor(principal), principal.tenant, leaseMs)).find(({ name }) => name === params.model)
      if (!agent) throw new RivuletError('not_found', 'No such model')
      return modelOf(agent)
    },
  )
}

function modelOf({ name }: { name: string }) {
  return { id: name, object: 'model' as const, created: 0, owned_by: 'rivulet' }
}

function wantedTurn(body: ChatCompletion): WantedTurn {
  const { model, metadata, temperature, top_p, reasoning, max_tokens, max_completion_tokens, reasoning_effort } = body
  if (!agentNameSchema.safeParse(model).success) throw new RivuletError('unknown_agent', 'No agent has this name')
  const { history, input } = conversationOf(messagesOfChat(body.messages), 'messages')
  const named = { temperature, top_p, reasoning, reasoning_effort, max_output_tokens: max_completion_tokens ?? max_tokens }
  const { task: name, ...own } = metadata ?? {}
  const given = { ...(history.length > 0 && { history }), metadata: own, params: paramsOf(body.params, named) ?? null }
  return { of: 'new task', body: { ...createTaskBody.parse({ agent: model, ...(name && { name }) }), input, ...given } }
}
