/**
 * OpenAI's Responses API, below `/openai/v1`: a model is an agent, a response is a segment of a turn, a conversation is a task.
 *
 * A response goes on when its caller leaves. It can be streamed from its beginning or after a sequence number, read, and canceled, by any caller
 * that may read the task.
 */

import type { AgentSettings } from '@rivulet/contract/internal'
import * as contract from '@rivulet/contract/openai'
import { createTaskBody } from '@rivulet/contract/tasks'
import { hasOpenQuestion, type Limits, type Message, RivuletError, taskIdSchema } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { orGiveBack } from '../../../access/open-streams.ts'
import { createAcceptTurn, type WantedTurn } from '../../../http/requests/accept-turn.ts'
import { createAudit, turnCancel } from '../../../http/requests/audited.ts'
import { createTurnResults } from '../../../http/requests/turn-result.ts'
import type { EventStream } from '../../../http/routes/tasks/events.ts'
import { serve } from '../../../http/serve.ts'
import type { Services } from '../../../http/services.ts'
import { turnMessagesNow } from '../../../log/live-messages.ts'
import { getTask } from '../../../store/reads/tasks.ts'
import { getTurn } from '../../../store/reads/turns.ts'
import { removeOnlyTurn } from '../../../store/tasks/remove-task.ts'
import { paramsOf, rejectUnsupported, requireModel } from '../openai-bodies.ts'
import { additionOf, conversationOf, handedOver, messagesOfItems, wrong } from '../openai-input.ts'
import { inputItemsOf } from './input-items.ts'
import { createItemReferences } from './item-references.ts'
import { openAiResponses } from './openai-responses.ts'
import { answersIn, createQuestionAnswers, type QuestionAnswer } from './question-responses.ts'
import { requestedParams } from './requested-params.ts'
import { maxSequenceNumber, parseResponseId, placeOfNumber, type ResponseId } from './response-id.ts'
import { headOf, type OpenAiResponse, type ResponseHead, storedResponse } from './response-object.ts'
import { firstSegment, segmentOf } from './segment.ts'

/** The turn that a request has begun. `dispatch` sends the turn to the workers. */
type Begun = { id: ResponseId; head: ResponseHead; read: () => Promise<OpenAiResponse>; dispatch: () => void }

export function responseRoutes(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { databaseFor, reader, ending, relay, announcer, config } = services
  const { requireShare, accept } = createAcceptTurn(services, scope.log)
  const { note, audited } = createAudit(services)
  const results = createTurnResults(services)
  const questions = createQuestionAnswers(services)
  const references = createItemReferences(services)

  serve(scope, contract.createResponse, async (request, reply) => {
    const { body } = request
    rejectUnsupported(body)
    const { tenant } = request.principal
    await requireShare(request)
    // A turn that is answered has the params and the tools of the request that began it.
    const settings = () => requireModel(databaseFor(request.principal), tenant, body.model)
    const answers = answersIn(body.input, config.limits)
    const isHandedOver =
      answers !== null && !body.previous_response_id && !body.conversation && !(await questions.belongTo(body.model, request, answers))
    const wanted =
      answers && !isHandedOver
        ? answers
        : wantedTurn(body, await itemsOf(request, body.input), await settings(), config.limits, isHandedOver)
    const isWaiting = Boolean(body.stream) || !body.background
    const admission = isWaiting ? events.reserve(request) : null
    const begun = 'of' in wanted ? create(request, reply, wanted) : answer(request, body, wanted)
    const { id, head, read, dispatch } = await orGiveBack(admission, begun)
    if (!admission) {
      dispatch()
      return read()
    }
    if (!body.stream) {
      dispatch()
      return results.send(reply, {
        ...id,
        admission,
        asks: hasOpenQuestion,
        read: async () => ({ body: await readResponse(request, id) }),
      })
    }
    const dialect = openAiResponses({
      head,
      after: null,
      read: () => readEnded(request, id),
      hidesRetries: request.query.retries === 'hide',
    })
    return events
      .stream(id.task, reply, { cursor: 'log', isFollowing: true, dialect, turnNumber: id.turnNumber }, admission)
      .finally(dispatch)
  })

  serve(scope, contract.getResponse, async (request, reply) => {
    const id = idOf(request.params.id)
    if (request.query.stream !== 'true') return readResponse(request, id)
    const after = numberOf(request.query.starting_after)
    const { head } = await readTurn(request, id)
    const place = after === null ? null : placeOfNumber(after)
    const dialect = openAiResponses({ head, after, read: () => readEnded(request, id), hidesRetries: request.query.retries === 'hide' })
    const cursor = place === null ? 'log' : place.isAfterGap ? null : place.cursor
    return events.stream(id.task, reply, { cursor, isFollowing: true, dialect, turnNumber: id.turnNumber })
  })

  serve(scope, contract.cancelResponse, async request => {
    const id = idOf(request.params.id)
    await readTurn(request, id)
    const change = turnCancel({ task: id.task, number: id.turnNumber })
    await ending.cancelTurn(request.principal, id.task, id.turnNumber, note(request, change))
    relay.kick()
    return readResponse(request, id)
  })

  serve(scope, contract.deleteResponse, async request => {
    const id = idOf(request.params.id)
    await readTurn(request, id)
    const { principal } = request
    const change = { target: id.task }
    await audited(databaseFor(principal.tenant), request, change, tx => removeOnlyTurn(tx, principal, id.task, id.turnNumber))
    await announcer.remove(id.task).catch(() => {})
    return { id: request.params.id, object: 'response', deleted: true as const }
  })

  serve(scope, contract.listInputItems, async request => {
    const id = idOf(request.params.id)
    const { turn } = await readTurn(request, id)
    const data = inputItemsOf(turn, id.segment, await messagesOf(request, id))
    return { object: 'list' as const, data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: false }
  })

  async function itemsOf({ principal }: FastifyRequest, input: contract.CreateResponse['input']): Promise<contract.WholeItem[]> {
    return typeof input === 'string' ? [{ role: 'user', content: input }] : references.resolve(principal, input)
  }

  async function create(request: FastifyRequest, reply: FastifyReply, wanted: WantedTurn): Promise<Begun> {
    const { task, turn, dispatch } = await accept(request, reply, wanted)
    const head = headOf(task, turn, firstSegment)
    const id = { task: task.id, turnNumber: turn.number, segment: 1 }
    return { id, head, read: async () => storedResponse(head, turn, []), dispatch }
  }

  async function answer(request: FastifyRequest, body: contract.CreateResponse, answers: readonly QuestionAnswer[]): Promise<Begun> {
    const { tenant } = request.principal
    const { previous_response_id: previous, conversation } = body
    const task = previous ? idOf(previous).task : (answers[0]?.task ?? '')
    const { agent } = await getTask(databaseFor(request.principal), tenant, task)
    if (agent !== body.model || (conversation && taskIdSchema.safeParse(nameOf(conversation)).success && nameOf(conversation) !== task))
      throw new RivuletError('bad_request', 'The requests are those of another conversation')
    const id = { task, ...(await questions.answer(request, task, answers)) }
    const { head } = await readTurn(request, id)
    return { id, head, read: () => readResponse(request, id), dispatch: relay.kick }
  }

  async function readTurn({ principal }: FastifyRequest, { task, turnNumber, segment }: ResponseId) {
    const { tenant } = principal
    const db = databaseFor(principal)
    const [about, turn] = [await getTask(db, tenant, task), await getTurn(db, tenant, task, turnNumber)]
    const known = segmentOf(turn.waits, segment)
    if (!known) throw noResponse()
    return { turn, head: headOf(about, turn, known) }
  }

  function messagesOf({ principal }: FastifyRequest, { task, turnNumber }: ResponseId): Promise<Message[]> {
    return turnMessagesNow(databaseFor(principal), reader, principal.tenant, task, turnNumber)
  }

  async function readResponse(request: FastifyRequest, id: ResponseId): Promise<OpenAiResponse> {
    const { head, turn } = await readTurn(request, id)
    return storedResponse(head, turn, await messagesOf(request, id))
  }

  async function readEnded(request: FastifyRequest, id: ResponseId): Promise<OpenAiResponse | null> {
    const response = await readResponse(request, id)
    return response.status === 'queued' || response.status === 'in_progress' ? null : response
  }
}

function wantedTurn(
  body: contract.CreateResponse,
  items: readonly contract.WholeItem[],
  settings: AgentSettings,
  limits: Limits,
  isHandedOver: boolean,
): WantedTurn {
  const { model, metadata, conversation, instructions, max_output_tokens, max_tool_calls, temperature, top_p, reasoning } = body
  const groups = messagesOfItems(items, limits)
  const { tools, tool_choice: toolChoice, text } = body
  const requested = requestedParams(settings, { tools, toolChoice, format: text?.format, formatField: 'text/format' })
  const named = { instructions, max_output_tokens, max_tool_calls, temperature, top_p, reasoning, ...requested }
  const previous = body.previous_response_id ? idOf(body.previous_response_id) : null
  const task = previous?.task ?? (conversation ? taskIdSchema.safeParse(nameOf(conversation)).data : undefined)
  if (task === undefined) {
    const { history, input } = isHandedOver ? handedOver(groups) : conversationOf(groups, 'input')
    const given = {
      ...(input && { input }),
      ...(history.length > 0 && { history }),
      ...(metadata && { metadata }),
      params: paramsOf(settings, body.params, named) ?? null,
    }
    const name = conversation ? { name: nameOf(conversation) } : {}
    return { of: 'new task', body: { ...createTaskBody.parse({ agent: model, ...name }), ...given } }
  }
  const addition = additionOf(groups, 'input')
  const texts = [...(instructions ? [instructions] : []), ...addition.instructions]
  const params = paramsOf(settings, body.params, { ...named, instructions: texts.length > 0 ? texts.join('\n\n') : null })
  return { of: 'task', task, agent: model, after: previous?.turnNumber, input: addition.input, params, declines: true, movesAgent: true }
}

function nameOf(conversation: NonNullable<contract.CreateResponse['conversation']>): string {
  const name = typeof conversation === 'string' ? conversation : conversation.id
  if (name.length < 1 || name.length > 200) throw wrong('conversation', 'A conversation has an id, or a name of 1 to 200 characters')
  return name
}

function idOf(text: string): ResponseId {
  const id = parseResponseId(text)
  if (!id) throw noResponse()
  return id
}

function noResponse(): RivuletError {
  return new RivuletError('task_not_found', 'No such response')
}

function numberOf(text: string | undefined): number | null {
  if (text === undefined) return null
  const number = Number(text)
  if (number > maxSequenceNumber) throw wrong('starting_after', 'It is not a sequence_number of this response')
  return number
}
