/**
 * A run of the AI SDK whose tools need approvals (`needsApproval`, `toolApproval`). Each stretch of the run, up to its next requests for approval, is a
 * step of the turn, which stores the response messages. So the turn waits for people without a worker, and neither model nor tool is called again when it
 * resumes. What was approved is what runs: the SDK gets the stored call.
 */
import { type AiSdkMessage, type AiSdkPart, fromAiSdk, toModelMessages } from '@rivulet/agent/ai-sdk'
import type { Json } from '@rivulet/protocol'
import type { Turn } from '../turn/turn.ts'
import type { AskOptions } from '../turn/waits/ask.ts'

/** The messages of one stretch: a history, the SDK's own responses, and the responses of people. Assignable to its `ModelMessage`. */
export type AiSdkConversation = (AiSdkMessage | ResponsesMessage)[]

/** What `streamText` returns, or `stream` of a `ToolLoopAgent`. */
export type StreamLike = { fullStream: AsyncIterable<AiSdkPart>; responseMessages: PromiseLike<readonly object[]> }

export type ApprovedStream = {
  /** Runs the model on these messages. */
  run: (messages: AiSdkConversation) => StreamLike | PromiseLike<StreamLike>
  /** Default: the history of the task. */
  messages?: AiSdkConversation
  /** What a question has besides its call: its assignee, how long the worker holds it. */
  ask?: Partial<Pick<AskOptions, 'assignee' | 'expiresIn' | 'hold' | 'detail'>>
}

type ResponsesMessage = { role: 'tool'; content: ApprovalResponse[] }
type ApprovalResponse = {
  type: 'tool-approval-response'
  approvalId: string
  approved: boolean
  reason?: string
  providerExecuted?: boolean
}

/** The SDK's `tool-approval-request`; one with `isAutomatic` has its response in the same stream. */
type RequestPart = AiSdkPart & { approvalId: string; toolCall: ToolCallLike; reason?: string; isAutomatic?: boolean }
type DenialPart = AiSdkPart & { toolCallId: string; reason?: string | undefined }
type ToolCallLike = { toolCallId: string; toolName: string; input: unknown; providerExecuted?: boolean }

type Request = { approvalId: string; callId: string; tool: string; input: Json; isProviders: boolean; reason?: string }
type Stretch = { text: string; responses: Json; requests: Request[] }

/** Sends all that the run emits, and resolves with the text of its last stretch. */
export async function streamWithApprovals(turn: Turn, { run, messages, ask = {} }: ApprovedStream): Promise<string> {
  const name = turn.nameFor('ai-sdk')
  const conversation = [...(messages ?? toModelMessages(await turn.history({ withFiles: true })))]
  let declined = new Map<string, string>()
  for (let number = 1; ; number += 1) {
    const stretch = await turn.step(`${name}/stretch ${number}`, () => play(turn, () => run([...conversation]), declined))
    if (stretch.requests.length === 0) return stretch.text
    const responses = await decide(turn, stretch.requests, place => `${name}/approval ${number}.${place + 1}`, ask)
    declined = reasonsOf(stretch.requests, responses)
    conversation.push(...(stretch.responses as unknown as AiSdkMessage[]), { role: 'tool', content: responses })
  }
}

async function play(turn: Turn, run: () => StreamLike | PromiseLike<StreamLike>, declined: Map<string, string>): Promise<Stretch> {
  const result = await run()
  const requests: Request[] = []
  const { text } = await turn.autoSend(fromAiSdk(heard(result.fullStream, requests, declined)))
  // An aborted run has no response messages, and its stream ends without an error.
  turn.signal.throwIfAborted()
  return { text, responses: [...(await result.responseMessages)] as Json, requests }
}

/** Collects the requests for approval, and adds to a denial why it was declined, which the SDK tells only the model. */
async function* heard(
  parts: AsyncIterable<AiSdkPart>,
  requests: Request[],
  declined: Map<string, string>,
): AsyncGenerator<AiSdkPart | DenialPart> {
  for await (const part of parts) {
    if (isRequest(part) && !part.isAutomatic) requests.push(requestOf(part))
    yield isDenial(part) ? { ...part, reason: declined.get(part.toolCallId) } : part
  }
}

function isRequest(part: AiSdkPart): part is RequestPart {
  return part.type === 'tool-approval-request'
}

function isDenial(part: AiSdkPart): part is DenialPart {
  return part.type === 'tool-output-denied'
}

function requestOf({ approvalId, reason, toolCall }: RequestPart): Request {
  const { toolCallId: callId, toolName: tool, input, providerExecuted: isProviders = false } = toolCall
  return { approvalId, callId, tool, input: (input ?? null) as Json, isProviders, ...(reason !== undefined && { reason }) }
}

/** All requests of a stretch are asked at once. */
async function decide(turn: Turn, requests: Request[], nameOf: (place: number) => string, ask: object): Promise<ApprovalResponse[]> {
  const questions = requests.map((request, place) => [nameOf(place), { ...questionOf(request), ...ask }] as const)
  const answers = await turn.askAll(Object.fromEntries(questions))
  return requests.map(({ approvalId, isProviders }, place) => {
    const { action, comment } = answers[nameOf(place)] ?? { action: 'decline' }
    return {
      type: 'tool-approval-response',
      approvalId,
      approved: action === 'accept',
      ...(comment !== undefined && { reason: comment }),
      ...(isProviders && { providerExecuted: true }),
    }
  })
}

function questionOf({ callId, tool, input, reason }: Request): AskOptions {
  return {
    title: `Run ${tool}?`,
    ...(reason !== undefined && { detail: reason }),
    ...{ tool, callId, arguments: input },
    actions: ['accept', 'decline'],
    onExpire: 'decline',
  }
}

function reasonsOf(requests: readonly Request[], responses: readonly ApprovalResponse[]): Map<string, string> {
  return new Map(requests.flatMap(({ callId }, place) => (responses[place]?.reason ? [[callId, responses[place].reason]] : [])))
}
