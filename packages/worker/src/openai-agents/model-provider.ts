/**
 * A model provider whose models speak through the turn: tokens, reasoning and tool calls as they come, also in a run that is not streamed, which
 * still gets the complete response. Without hooks, tool responses are sent when the run returns them to the model.
 */
import { type Json, toolResponse, toStorableJson } from '@rivulet/protocol'
import { type CurrentTurn, currentTurn, withSpan } from './current-turn.ts'
import { type CallResult, type DoneResponse, fieldsOf, type ModelEvent, type TokenCounts } from './model-events.ts'
import { startChatSpan } from './model-span.ts'
import { createResponseSender } from './response-sender.ts'
import { isToolError } from './tool-errors.ts'

type ModelLike = {
  getResponse(request: never): Promise<unknown>
  getStreamedResponse(request: never): AsyncIterable<unknown>
}

export type ModelProviderLike<M extends ModelLike> = { getModel(name?: string): Promise<M> | M }

export function streamThroughTurn<M extends ModelLike>(provider: ModelProviderLike<M>): { getModel(name?: string): Promise<M> } {
  return { getModel: async name => speaking(await provider.getModel(name), name) }
}

/** The model itself, but for its two ways to answer. Not a copy: it may have private fields. */
function speaking<M extends ModelLike>(model: M, name: string | undefined): M {
  return new Proxy(model, {
    get(target, key) {
      if (key === 'getResponse') return (request: never) => getResponse(target, request, name)
      if (key === 'getStreamedResponse') return (request: never) => getStreamedResponse(target, request, name)
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

async function getResponse(model: ModelLike, request: never, name: string | undefined): Promise<unknown> {
  const current = currentTurn()
  if (!current) return model.getResponse(request)
  let done: DoneResponse | null = null
  for await (const event of speak(current, model, request, name)) if (event.type === 'response_done') done = event.response
  if (!done) throw new Error('The model ended its stream without a response')
  return responseOf(done)
}

/** The turn is looked up when the response is requested, because the stream may be read in another async context. */
function getStreamedResponse(model: ModelLike, request: never, name: string | undefined): AsyncIterable<unknown> {
  const current = currentTurn()
  return current ? speak(current, model, request, name) : model.getStreamedResponse(request)
}

async function* speak(current: CurrentTurn, model: ModelLike, request: never, name: string | undefined): AsyncGenerator<ModelEvent> {
  for (const result of resultsIn(request)) await tellResult(current, result)
  const sender = createResponseSender(current, name)
  const { span, end } = startChatSpan(current.turn.span, name)
  const below = <T>(work: () => T) => withSpan(current, span, work)
  const events = below(() => model.getStreamedResponse(request)[Symbol.asyncIterator]()) as AsyncIterator<ModelEvent>
  let usage: TokenCounts | undefined
  let how: 'done' | 'error' = 'error'
  try {
    for (;;) {
      const { value: event, done: isDone } = await below(() => events.next())
      if (isDone) break
      await sender.send(event)
      if (event.type === 'response_done') usage = event.response.usage
      yield event
    }
    how = 'done'
  } catch (error) {
    await sender.fail(error)
    throw error
  } finally {
    if (how === 'error') await events.return?.().catch(() => {})
    end(how, usage)
  }
}

function resultsIn(request: unknown): CallResult[] {
  const { input } = fieldsOf(request)
  return Array.isArray(input) ? input.filter((item): item is CallResult => fieldsOf(item).type === 'function_call_result') : []
}

/** Only of calls that were asked for in this turn: the others are its past. */
async function tellResult({ turn, calls, responses }: CurrentTurn, { callId, name, output }: CallResult): Promise<void> {
  if (!calls.has(callId) || responses.has(callId)) return
  responses.set(callId, null)
  const result = plainOutput(output)
  await turn.send(toolResponse(callId, name, result, isToolError(result)))
}

/** The text of an output that is a text. */
export function plainOutput(output: unknown): Json {
  const { type, text } = fieldsOf(output)
  return type === 'text' && typeof text === 'string' ? text : toStorableJson(output ?? null, 32)
}

/** What a run that is not streamed expects: the counts are those of one request, in the SDK's own form. */
function responseOf({ id, output, usage = {}, ...rest }: DoneResponse): object {
  const { inputTokens = 0, outputTokens = 0, totalTokens = inputTokens + outputTokens, inputTokensDetails, outputTokensDetails } = usage
  return {
    ...rest,
    output,
    responseId: id,
    usage: {
      ...usage,
      ...{ requests: 1, inputTokens, outputTokens, totalTokens },
      inputTokensDetails: inputTokensDetails ? [inputTokensDetails].flat() : [],
      outputTokensDetails: outputTokensDetails ? [outputTokensDetails].flat() : [],
    },
  }
}
