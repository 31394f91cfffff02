/**
 * Responses to what a turn asks for, as the input of a response: `mcp_approval_response` for an approval, `function_call_output` for a form or a tool.
 * The id of a question names its task, so a client needs no `previous_response_id` to answer it.
 */
import type { ChatMessage, InputItem } from '@rivulet/contract/openai'
import { type Json, type Limits, RivuletError, type TaskId, type Turn, type Wait } from '@rivulet/protocol'
import type { FastifyRequest } from 'fastify'
import { createAnswerWaits, type WaitResponse } from '../../../http/requests/answer-waits.ts'
import { parseCallerText } from '../../../http/requests/json-body.ts'
import type { Services } from '../../../http/services.ts'
import { getTask } from '../../../store/reads/tasks.ts'
import { getTurn } from '../../../store/reads/turns.ts'
import { getWait } from '../../../store/waits/answer-wait.ts'
import { answerOf } from '../../ag-ui/interrupts.ts'
import { outputOf, wrong } from '../openai-input.ts'
import { parseQuestionId, type QuestionId } from './output-item.ts'
import { closingQuestions, segmentAfter, segmentOf } from './segment.ts'

export type QuestionAnswer = QuestionId & { of: 'approval' | 'call'; payload: Json }

/** Null where the input does not end with an answer: then it is the input of a new turn. */
export function answersIn(input: string | readonly InputItem[], limits: Limits): QuestionAnswer[] | null {
  if (typeof input === 'string') return null
  const first = input.findLastIndex(item => answerIn(item, limits) === null) + 1
  const answers = input.slice(first).flatMap(item => answerIn(item, limits) ?? [])
  return answers.length > 0 ? answers : null
}

function answerIn(item: InputItem, limits: Limits): QuestionAnswer | null {
  if (item.type === 'mcp_approval_response') {
    const asked = parseQuestionId(item.approval_request_id)
    if (!asked) throw new RivuletError('not_found', 'No such approval request')
    return { ...asked, of: 'approval', payload: { approved: item.approve, ...(item.reason && { reason: item.reason }) } }
  }
  if (item.type !== 'function_call_output') return null
  const asked = parseQuestionId(item.call_id)
  return asked && { ...asked, of: 'call', payload: jsonOf(outputOf(item.output), 'input', limits) }
}

/** For a chat whose last messages are results of our calls. The id of a call names its task, so the messages before do not matter. */
export function answersInChat(messages: readonly ChatMessage[], limits: Limits): QuestionAnswer[] | null {
  const first = messages.findLastIndex(message => message.role !== 'tool') + 1
  const answers = messages.slice(first).flatMap((message): QuestionAnswer[] => {
    const asked = message.role === 'tool' ? parseQuestionId(message.tool_call_id) : null
    return asked && message.role === 'tool'
      ? [{ ...asked, of: 'call', payload: jsonOf(outputOf(message.content), 'messages', limits) }]
      : []
  })
  return answers.length > 0 ? answers : null
}

/** Clients send outputs as text. */
function jsonOf(output: Json, param: string, limits: Limits): Json {
  const value = typeof output === 'string' ? parseCallerText(output, limits, `/${param}`) : undefined
  return value === undefined ? output : value
}

export function createQuestionAnswers(services: Pick<Services, 'databaseFor' | 'waiting' | 'metrics' | 'refusals'>) {
  const { databaseFor } = services
  const answerWaits = createAnswerWaits(services)
  return { answer, belongTo }

  /** A call of another agent is a part of the history that a client hands over. */
  async function belongTo(agent: string, { principal }: FastifyRequest, [first]: readonly QuestionAnswer[]): Promise<boolean> {
    return (await getTask(databaseFor(principal), principal.tenant, first?.task ?? '')).agent === agent
  }

  /** Returns the segment that follows. A question that was closed meanwhile stays as it is. `isNeeded`: the caller has to answer it. */
  async function answer(
    request: FastifyRequest,
    task: TaskId,
    answers: readonly QuestionAnswer[],
    isNeeded: (wait: Wait) => boolean = () => true,
  ): Promise<{ turnNumber: number; segment: number }> {
    const { tenant } = request.principal
    const db = databaseFor(request.principal)
    if (answers.some(given => given.task !== task)) throw wrong('input', 'The requests are those of another conversation')
    const waits = await Promise.all(answers.map(({ wait }) => getWait(db, tenant, task, wait)))
    const responses = waits.map((wait, place) => responseTo(wait, answers[place]))
    const [first] = waits
    const turn = await getTurn(db, tenant, task, first?.turn ?? 0)
    const segment = segmentAfter(turn.waits, first ?? { createdAt: '' })
    const answered = new Set(waits.map(({ id }) => id))
    if (questionsBefore(turn, segment).some(wait => wait.status === 'open' && !answered.has(wait.id) && isNeeded(wait)))
      throw wrong('input', 'Answer every request of the response')
    await answerWaits(request, task, responses)
    return { turnNumber: turn.number, segment }
  }
}

/** Those that the segment before this one ends with. */
export function questionsBefore({ waits }: Turn, number: number): Wait[] {
  const previous = segmentOf(waits, number)?.previous
  return previous === null || previous === undefined ? [] : closingQuestions(waits, previous)
}

function responseTo(wait: Wait, given: QuestionAnswer | undefined): WaitResponse {
  if (!given || (given.of === 'approval') !== (wait.kind === 'approval')) throw wrong('input', 'The item does not fit the request')
  return { wait: wait.id, answer: answerOf(wait, { interruptId: wait.id, status: 'resolved', payload: given.payload }) }
}
