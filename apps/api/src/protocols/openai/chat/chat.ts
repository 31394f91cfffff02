/** OpenAI's older API, below `/openai/v1`: chat completions, and the agents as models. */

import type { AgentSettings } from '@rivulet/contract/internal'
import * as contract from '@rivulet/contract/openai'
import { createTaskBody } from '@rivulet/contract/tasks'
import { type Limits, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { orGiveBack } from '../../../access/open-streams.ts'
import { createAcceptTurn, type WantedTurn } from '../../../http/requests/accept-turn.ts'
import { createTurnResults, type Result } from '../../../http/requests/turn-result.ts'
import type { EventStream } from '../../../http/routes/tasks/events.ts'
import { serve } from '../../../http/serve.ts'
import type { Services } from '../../../http/services.ts'
import { turnMessagesNow } from '../../../log/live-messages.ts'
import { listAgents } from '../../../store/agents/agents.ts'
import { getTask } from '../../../store/reads/tasks.ts'
import { getTurn } from '../../../store/reads/turns.ts'
import { paramsOf, rejectUnsupportedChat, requireModel } from '../openai-bodies.ts'
import { conversationOf, handedOver, messagesOfChat } from '../openai-input.ts'
import { answersInChat, createQuestionAnswers, type QuestionAnswer } from '../responses/question-responses.ts'
import { requestedParams } from '../responses/requested-params.ts'
import { headOf, type ResponseHead } from '../responses/response-object.ts'
import { firstSegment, segmentOf } from '../responses/segment.ts'
import { chatCompletion, isCalling, openAiChat } from './chat-completion.ts'

/** The turn that a request has begun. `dispatch` sends the turn to the workers. */
type Begun = { head: ResponseHead; dispatch: () => void }

export function chatRoutes(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { databaseFor, reader, relay, config } = services
  const { requireShare, accept } = createAcceptTurn(services, scope.log)
  const results = createTurnResults(services)
  const questions = createQuestionAnswers(services)

  serve(scope, contract.createChatCompletion, async (request, reply) => {
    const { body } = request
    const { tenant } = request.principal
    const db = databaseFor(request.principal)
    rejectUnsupportedChat(body)
    // A turn that is answered has the params and the tools of the request that began it.
    const answers = answersInChat(body.messages, config.limits)
    const isHandedOver = answers !== null && !(await questions.belongTo(body.model, request, answers))
    const wanted =
      answers && !isHandedOver ? answers : wantedTurn(body, await requireModel(db, tenant, body.model), config.limits, isHandedOver)
    await requireShare(request)
    const admission = events.reserve(request)
    const begun = 'of' in wanted ? create(request, reply, wanted) : answer(request, wanted)
    const { head, dispatch } = await orGiveBack(admission, begun)
    const { task, number: turnNumber } = head
    if (body.stream) {
      const includesUsage = body.stream_options?.include_usage === true
      const dialect = openAiChat(head, { includesUsage, hidesRetries: request.query.retries === 'hide' })
      return events.stream(task, reply, { cursor: 'log', isFollowing: true, dialect, turnNumber }, admission).finally(dispatch)
    }
    dispatch()
    return results.send(reply, { task, turnNumber, admission, asks: waits => isCalling(waits, head.segment), read })

    async function read(): Promise<Result> {
      const turn = await getTurn(db, tenant, task, turnNumber)
      const completion = chatCompletion(head, turn, await turnMessagesNow(db, reader, tenant, task, turnNumber))
      if (completion) return { body: completion }
      // Another try of the same request would be another turn.
      reply.header('x-should-retry', 'false')
      const { code, message } = turn.error ?? { code: turn.status, message: `The turn has ${turn.status}` }
      return { status: 500, body: { error: { code, message, type: 'server_error', param: null, requestId: request.id } } }
    }
  })

  async function create(request: FastifyRequest, reply: FastifyReply, wanted: WantedTurn): Promise<Begun> {
    const { task, turn, dispatch } = await accept(request, reply, wanted)
    return { head: headOf(task, turn, firstSegment), dispatch }
  }

  async function answer(request: FastifyRequest, answers: readonly QuestionAnswer[]): Promise<Begun> {
    const { tenant } = request.principal
    const db = databaseFor(request.principal)
    const about = await getTask(db, tenant, answers[0]?.task ?? '')
    const { turnNumber, segment } = await questions.answer(request, about.id, answers, ({ kind }) => kind === 'tool')
    const turn = await getTurn(db, tenant, about.id, turnNumber)
    const known = segmentOf(turn.waits, segment)
    if (!known) throw new RivuletError('not_found', 'No such call')
    return { head: headOf(about, turn, known), dispatch: relay.kick }
  }
}

export function modelRoutes(scope: FastifyInstance, { databaseFor, config: { leaseMs } }: Services): void {
  serve(scope, contract.listModels, async ({ principal }) => ({
    object: 'list' as const,
    data: (await listAgents(databaseFor(principal), principal.tenant, leaseMs)).map(modelOf),
  }))

  serve(scope, contract.getModel, async ({ params, principal }) => {
    const agent = (await listAgents(databaseFor(principal), principal.tenant, leaseMs)).find(({ name }) => name === params.model)
    if (!agent) throw new RivuletError('unknown_agent', 'No such model')
    return modelOf(agent)
  })
}

function modelOf({ name }: { name: string }) {
  return { id: name, object: 'model' as const, created: 0, owned_by: 'rivulet' }
}

function wantedTurn(body: contract.ChatCompletion, settings: AgentSettings, limits: Limits, isHandedOver: boolean): WantedTurn {
  const { model, metadata, temperature, top_p, reasoning, max_tokens, max_completion_tokens, reasoning_effort } = body
  const { tools, tool_choice: toolChoice, response_format: format } = body
  const groups = messagesOfChat(body.messages, limits)
  const { history, input } = isHandedOver ? handedOver(groups) : conversationOf(groups, 'messages')
  const named = {
    temperature,
    top_p,
    reasoning,
    reasoning_effort,
    max_output_tokens: max_completion_tokens ?? max_tokens,
    ...requestedParams(settings, { tools, toolChoice, format, formatField: 'response_format' }),
  }
  const { task: name, ...own } = metadata ?? {}
  const given = {
    ...(input && { input }),
    ...(history.length > 0 && { history }),
    metadata: own,
    params: paramsOf(settings, body.params, named) ?? null,
  }
  return { of: 'new task', body: { ...createTaskBody.parse({ agent: model, ...(name && { name }) }), ...given } }
}
