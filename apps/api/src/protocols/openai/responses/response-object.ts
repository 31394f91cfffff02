/** The object of OpenAI's Responses API: one segment of a turn, as it stands. */
import { hasEnded, type Json, type Message, type Task, type Turn, type Usage } from '@rivulet/protocol'
import { type Item, outputOf, type QuestionItem, questionItem } from './output-item.ts'
import { formatResponseId } from './response-id.ts'
import { closingQuestions, endOf, type Question, type Segment } from './segment.ts'

type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'failed' | 'incomplete' | 'cancelled'

export type OpenAiResponse = {
  id: string
  object: 'response'
  created_at: number
  completed_at: number | null
  status: ResponseStatus
  error: { code: 'server_error'; message: string } | null
  incomplete_details: { reason: 'max_output_tokens' | 'content_filter' } | null
  instructions: string | null
  metadata: Record<string, string>
  model: string
  output: (Item | QuestionItem)[]
  parallel_tool_calls: boolean
  temperature: number | null
  tool_choice: Json
  text: { format: Json }
  tools: Json[]
  top_p: number | null
  background: boolean
  previous_response_id: string | null
  conversation: { id: string }
  usage: OpenAiUsage | null
}

type OpenAiUsage = {
  input_tokens: number
  input_tokens_details: { cached_tokens: number }
  output_tokens: number
  output_tokens_details: { reasoning_tokens: number }
  total_tokens: number
}

/** The fields that stay the same while the turn runs. */
export type ResponseHead = Pick<Task, 'agent' | 'metadata'> &
  Pick<Turn, 'task' | 'number' | 'queuedAt'> & { params: Json; segment: Segment }

/** The fields of a turn that change. */
export type TurnState = Pick<Turn, 'status' | 'stopReason' | 'usage' | 'error' | 'finishedAt'>

export function headOf({ agent, metadata, params }: Task, turn: Turn, segment: Segment): ResponseHead {
  return { agent, metadata, params: turn.params ?? params, task: turn.task, number: turn.number, queuedAt: turn.queuedAt, segment }
}

export function responseOf(head: ResponseHead, turn: TurnState, output: OpenAiResponse['output']): OpenAiResponse {
  const { task, number, params, segment } = head
  const { finishedAt, error, usage } = turn
  const given = typeof params === 'object' && params !== null && !Array.isArray(params) ? params : {}
  const reason = incompleteReason(turn)
  return {
    ...{ id: formatResponseId({ task, turnNumber: number, segment: segment.number }), object: 'response' },
    created_at: secondsOf(segment.since ?? head.queuedAt),
    completed_at: finishedAt === undefined ? null : secondsOf(finishedAt),
    status: reason ? 'incomplete' : statuses[turn.status],
    error: turn.status === 'failed' ? { code: 'server_error', message: error?.message ?? 'The turn failed' } : null,
    incomplete_details: reason && { reason },
    instructions: typeof given.instructions === 'string' ? given.instructions : null,
    metadata: stringsOf(head.metadata),
    ...{ model: head.agent, output, parallel_tool_calls: true },
    temperature: typeof given.temperature === 'number' ? given.temperature : null,
    ...{ tool_choice: given.tool_choice ?? 'auto', tools: Array.isArray(given.tools) ? given.tools : [] },
    text: { format: given.format ?? { type: 'text' } },
    top_p: typeof given.top_p === 'number' ? given.top_p : null,
    background: true,
    previous_response_id: previousOf(head),
    conversation: { id: task },
    // OpenAI's own has it whenever it is over.
    usage: usage ? usageOf(usage) : finishedAt === undefined ? null : usageOf({}),
  }
}

/** The object of a segment, from the messages of its turn, as stored or as the log has them. */
export function storedResponse(head: ResponseHead, turn: Turn, messages: readonly Message[]): OpenAiResponse {
  const questions = closingQuestions(turn.waits, head.segment.number)
  if (questions.length > 0) return askingResponse(head, questions, messages)
  return responseOf(head, turn, outputOf(messages, { from: head.segment.from, to: null }, hasEnded(turn.status)))
}

/** A response that asks for something is complete: what follows the answer is another one. */
export function askingResponse(head: ResponseHead, questions: readonly Question[], messages: readonly Message[]): OpenAiResponse {
  const items = outputOf(messages, { from: head.segment.from, to: endOf(questions) }, true)
  const finishedAt = questions[0]?.createdAt
  return responseOf(head, { status: 'completed', ...(finishedAt && { finishedAt }) }, [...items, ...questions.map(questionItem)])
}

/** The first segment of an earlier turn stands for all of it. */
function previousOf({ task, number, segment: { previous } }: ResponseHead): string | null {
  if (previous !== null) return formatResponseId({ task, turnNumber: number, segment: previous })
  return number > 1 ? formatResponseId({ task, turnNumber: number - 1, segment: 1 }) : null
}

/** Counts that the agent did not report are 0. */
export function usageOf({ inputTokens = 0, outputTokens = 0, totalTokens, cacheReadTokens = 0, reasoningTokens = 0 }: Usage): OpenAiUsage {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cacheReadTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: totalTokens ?? inputTokens + outputTokens,
  }
}

export function secondsOf(time: string): number {
  return Math.floor(Date.parse(time) / 1_000)
}

function incompleteReason({ status, stopReason }: TurnState): 'max_output_tokens' | 'content_filter' | null {
  if (status !== 'completed') return null
  return stopReason === 'length' ? 'max_output_tokens' : stopReason === 'content_filter' ? 'content_filter' : null
}

/** OpenAI's metadata has texts only. */
export function stringsOf(metadata: object): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

const statuses = {
  queued: 'queued',
  running: 'in_progress',
  waiting: 'in_progress',
  completed: 'completed',
  failed: 'failed',
  canceled: 'cancelled',
  discarded: 'cancelled',
} as const satisfies Record<Turn['status'], ResponseStatus>
