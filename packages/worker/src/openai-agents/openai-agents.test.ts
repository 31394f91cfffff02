/** The adapters over models and runners that are written down here after the SDK's types; the real ones are in test/sdks. */
import { EventEmitter } from 'node:events'
import { type Content, custom, full, type JsonObject, start } from '@rivulet/protocol'
import { newTraceparent, plainSpan, type Span } from '@rivulet/runtime/trace'
import { expect, test } from 'vitest'
import { defineAgent } from '../define-agent.ts'
import { testTurn } from '../testing/index.ts'
import type { Turn } from '../turn/turn.ts'
import { createMessageHandle } from '../writer/message-handle.ts'
import { createTurnWriter, type TurnWriter } from '../writer/turn-writer.ts'
import { fromOpenAiAgents, inTurn, type RunEventLike, streamThroughTurn, tellTurn } from './index.ts'
import type { ModelEvent, OutputItem } from './model-events.ts'

const call = { type: 'function_call', callId: 'c1', name: 'now', arguments: '{"utc":true}' }
const message = (text: string): OutputItem => ({ type: 'message', content: [{ type: 'output_text', text }] })

test('what a model does not stream is said when its response is done', async () => {
  const { turn, said } = open()
  const reasoning = { type: 'reasoning', content: [{ text: 'sum' }], rawContent: [{ text: 'raw' }] }
  const hosted = { type: 'hosted_tool_call', name: 'web_search', id: 'w1' }
  await ask(turn, [done([reasoning, message('Hello'), { type: 'message', content: [{ type: 'refusal', refusal: 'No.' }] }, hosted, call])])
  expect(said()).toMatchObject([
    { content: { type: 'reasoning', summary: ['sum'], content: ['raw'] } },
    { content: { text: 'Hello' } },
    { content: { text: 'No.' }, metadata: { refusal: true } },
    { content: { type: 'data', data: hosted } },
    { content: { type: 'tool_request', arguments: { utc: true } }, status: 'complete', stopReason: 'tool_use', usage: { inputTokens: 2 } },
  ])
})

test('what came out otherwise than it was streamed replaces it', async () => {
  const { turn, said } = open()
  const fragment = (text: string, more: object = {}) => chunk({ tool_calls: [{ index: 0, ...more, function: { arguments: text } }] })
  const first = chunk({ tool_calls: [{ index: 0, id: 'c1', function: { name: 'n' } }] })
  const named = chunk({ tool_calls: [{ index: 0, function: { name: 'ow', arguments: '{}' } }] })
  await ask(turn, [first, named, fragment('{"utc":true}'), done([call])])
  expect(said()).toMatchObject([
    { content: { callId: 'c1', name: 'now', arguments: { utc: true } }, status: 'complete' },
    { content: { type: 'reasoning', summary: [], content: [] }, stopReason: 'tool_use', usage: { inputTokens: 2, outputTokens: 3 } },
  ])
})

test('texts of several items are several messages, and a cut-off answer says so', async () => {
  const { turn, said } = open()
  const text = (delta: string, itemId: string): ModelEvent => ({ type: 'output_text_delta', delta, itemId })
  await ask(turn, [text('a', '1'), text('b', '1'), text('c', '2'), chunk({}, 'length'), done([message('ab'), message('c')])])
  expect(said()).toMatchObject([{ content: { text: 'ab' } }, { content: { text: 'c' }, stopReason: 'length' }])
})

test('a tool is answered once, by its hook, or by the request that follows; what is of an earlier turn is left alone', async () => {
  const runner = new EventEmitter()
  tellTurn(runner)
  const results = ['c1', 'c2', 'old'].map(callId => ({
    type: 'function_call_result',
    callId,
    name: 'now',
    output: { type: 'text', text: 'noon' },
  }))
  const { turn, said } = open()
  await inTurn(async () => {
    const model = await modelOf([done([call, { ...call, callId: 'c2' }])]).getModel()
    await model.getResponse({ input: 'what time is it?' })
    runner.emit('agent_tool_start', {}, { name: 'A' }, { name: 'now' }, { toolCall: call })
    runner.emit('agent_tool_end', {}, { name: 'A' }, { name: 'now' }, 'noon', { toolCall: call })
    await model.getResponse({ input: results })
  })(turn)
  const responses = said().filter(({ content }) => content.type === 'tool_response')
  expect(responses).toMatchObject([
    { content: { callId: 'c1', content: 'noon' }, status: 'complete' },
    { content: { callId: 'c2', content: 'noon' }, status: 'complete' },
  ])
})

test('a tool that failed has an error as its response, from a hook and from the request that follows', async () => {
  const runner = new EventEmitter()
  tellTurn(runner)
  const { turn, said } = open()
  const result = { type: 'function_call_result', callId: 'c2', name: 'now', output: { type: 'text', text: 'Error: no clock' } }
  await inTurn(async () => {
    const model = await modelOf([done([call, { ...call, callId: 'c2' }])]).getModel()
    await model.getResponse({ input: 'what time is it?' })
    runner.emit('agent_tool_start', {}, { name: 'A' }, { name: 'now' }, { toolCall: call })
    const sentence = 'An error occurred while running the tool. Please try again.'
    runner.emit('agent_tool_end', {}, { name: 'A' }, { name: 'now' }, sentence, { toolCall: call })
    await model.getResponse({ input: [result] })
  })(turn)
  expect(said().flatMap(({ content }) => (content.type === 'tool_response' ? [content.isError] : []))).toEqual([true, true])
})

test('a response that reached its limit is complete with that stop reason, and the error of the SDK is thrown', async () => {
  const { turn, said } = open()
  const incomplete = { type: 'response.incomplete', response: { incomplete_details: { reason: 'max_output_tokens' } } }
  const events: ModelEvent[] = [
    { type: 'output_text_delta', delta: 'As far as' },
    { type: 'model', event: incomplete },
  ]
  const asked = ask(turn, events, new Error('unsuccessful terminal state'))
  await expect(asked).rejects.toThrow('unsuccessful')
  expect(said()).toMatchObject([{ content: { text: 'As far as' }, status: 'complete', stopReason: 'length' }])
})

test('calls of the model and of tools have spans below that of the turn', async () => {
  const spans: string[] = []
  const runner = new EventEmitter()
  tellTurn(runner)
  const { turn } = open({
    traceparent: newTraceparent(),
    start: name => ({
      ...plainSpan(newTraceparent()),
      end: ({ failure, attributes } = {}) => void spans.push(`${name} ${failure?.code ?? JSON.stringify(attributes ?? {})}`),
    }),
    end: () => {},
  })
  await inTurn(async () => {
    await (await modelOf([done([call])]).getModel('m')).getResponse({ input: 'go' })
    runner.emit('agent_tool_start', {}, { name: 'A' }, { name: 'now' }, { toolCall: call })
    runner.emit('agent_tool_end', {}, { name: 'A' }, { name: 'now' }, 'Error: no clock', { toolCall: call })
  })(turn)
  expect(spans).toEqual(['chat m {"gen_ai.usage.input_tokens":2,"gen_ai.usage.output_tokens":3}', 'execute_tool now tool_failed'])
})

test('a streamed run is a generator of updates: text, reasoning, calls, results and handoffs, each once', async () => {
  const raw = (data: ModelEvent): RunEventLike => ({ type: 'raw_model_stream_event', data })
  const result = { type: 'function_call_result', callId: 'c1', name: 'now', output: { type: 'text', text: 'noon' } }
  const events: RunEventLike[] = [
    { type: 'agent_updated_stream_event', agent: { name: 'A' } },
    raw({ type: 'output_text_delta', delta: 'Let me ' }),
    raw({ type: 'output_text_delta', delta: 'look.' }),
    raw(chunk({ tool_calls: [{ index: 0, id: 'c1', function: { name: 'now', arguments: '{"utc":' } }] })),
    raw(chunk({ tool_calls: [{ index: 0, function: { arguments: 'true}' } }] })),
    raw(done([message('Let me look.'), call])),
    { type: 'run_item_stream_event', name: 'tool_called', item: { rawItem: call } },
    { type: 'run_item_stream_event', name: 'tool_output', item: { rawItem: result } },
    {
      type: 'run_item_stream_event',
      name: 'handoff_occurred',
      item: { rawItem: {}, sourceAgent: { name: 'A' }, targetAgent: { name: 'B' } },
    },
    raw({ type: 'output_text_delta', delta: 'Noon.' }),
    raw(done([message('Noon.')])),
  ]
  const agent = defineAgent('generator', async function* (turn) {
    yield* fromOpenAiAgents(iterate(events), turn)
  })
  const { messages, events: log, status } = await testTurn(agent)
  expect(status).toBe('completed')
  expect(messages).toMatchObject([
    { content: { text: 'Let me look.' } },
    { content: { type: 'tool_request', callId: 'c1', arguments: { utc: true } }, stopReason: 'tool_use', usage: { inputTokens: 2 } },
    { content: { type: 'tool_response', callId: 'c1', content: 'noon', isError: false } },
    { content: { text: 'Noon.' }, stopReason: 'stop' },
  ])
  expect(log.flatMap(event => (event.type === 'custom' ? [event.name] : []))).toEqual(['agent.started', 'agent.handoff'])
})

test('a streamed run that was cut off ends its generator with the stop reason; one that fails throws', async () => {
  const incomplete = { type: 'response.incomplete', response: { incomplete_details: { reason: 'max_output_tokens' } } }
  const said: RunEventLike = { type: 'raw_model_stream_event', data: { type: 'output_text_delta', delta: 'As far' } }
  const cut: RunEventLike = { type: 'raw_model_stream_event', data: { type: 'model', event: incomplete } }
  const run = (events: RunEventLike[]) =>
    testTurn(
      defineAgent('generator', async function* () {
        yield* fromOpenAiAgents(iterate(events, new Error('broken')))
      }),
    )
  expect(await run([said, cut])).toMatchObject({ status: 'completed', stopReason: 'length', text: 'As far' })
  expect(await run([said])).toMatchObject({ status: 'failed', messages: [{ status: 'failed', content: { text: 'As far' } }] })
})

test('a run that is not streamed gets the complete response, in the form that it expects', async () => {
  const { turn } = open()
  const response = await ask(turn, [done([message('Hello')])])
  expect(response).toEqual({
    output: [message('Hello')],
    responseId: 'r1',
    usage: {
      ...{ requests: 1, inputTokens: 2, outputTokens: 3, totalTokens: 5 },
      inputTokensDetails: [{ cached_tokens: 1 }],
      outputTokensDetails: [],
    },
  })
})

test('other members of a model are its own, private ones included', async () => {
  class Model {
    #advice = 'wait'
    getResponse = async () => ({})
    async *getStreamedResponse(): AsyncGenerator<unknown> {}
    getRetryAdvice(): string {
      return this.#advice
    }
  }
  const model = await streamThroughTurn({ getModel: () => new Model() }).getModel()
  expect(model.getRetryAdvice()).toBe('wait')
})

async function* iterate<T>(events: T[], error?: Error): AsyncGenerator<T> {
  yield* events
  if (error) throw error
}

function modelOf(events: ModelEvent[], error?: Error) {
  return streamThroughTurn({
    getModel: () => ({
      getResponse: async (_request: unknown) => {
        throw new Error('In a turn a model is asked to stream')
      },
      async *getStreamedResponse(_request: unknown): AsyncGenerator<unknown> {
        yield* iterate(events, error)
      },
    }),
  })
}

async function ask(turn: Turn, events: ModelEvent[], error?: Error): Promise<unknown> {
  let response: unknown
  await inTurn(async () => {
    response = await (await modelOf(events, error).getModel()).getResponse({ input: 'go' })
  })(turn)
  return response
}

function done(output: OutputItem[]): ModelEvent {
  const usage = { inputTokens: 2, outputTokens: 3, inputTokensDetails: { cached_tokens: 1 } }
  return { type: 'response_done', response: { id: 'r1', output, usage } }
}

/** A chunk of Chat Completions, as the SDK hands it on. */
function chunk(delta: object, finish_reason: string | null = null): ModelEvent {
  return { type: 'model', event: { choices: [{ index: 0, delta, finish_reason }] } }
}

/** A turn over a log that takes everything, as far as the adapters know it. */
function open(span: Span = plainSpan(newTraceparent())): { turn: Turn; said: TurnWriter['messages'] } {
  const writer = createTurnWriter({
    turn: { task: '01890000-0000-7000-8000-000000000000', turn: 1, attempt: 1, firstIndex: 0 },
    epoch: 1,
    appender: { append: async () => 'ok' },
    askReopen: async () => null,
    onFenced: () => {},
    onLost: () => {},
  })
  const turn: Pick<Turn, 'send' | 'custom' | 'span'> & { message: unknown } = {
    span,
    message(content: Content, { metadata }: { metadata?: JsonObject } = {}) {
      const index = writer.nextIndex()
      writer.say(start(index, content, metadata))
      return createMessageHandle(writer, index)
    },
    async send(content) {
      const index = writer.nextIndex()
      await writer.write(full(index, content))
      return createMessageHandle(writer, index)
    },
    custom: (name, data) => writer.write(custom(name, data)),
  }
  return { turn: turn as Turn, said: writer.messages }
}
