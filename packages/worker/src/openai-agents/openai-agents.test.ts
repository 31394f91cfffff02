/** The adapters over models and runners that are written down here after the SDK's types; the real ones are in test/sdks. */
import { EventEmitter } from 'node:events'
import { type Content, custom, full, type JsonObject, start } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import type { Turn } from '../turn/turn.ts'
import { createMessageHandle } from '../writer/message-handle.ts'
import { createTurnWriter, type TurnWriter } from '../writer/turn-writer.ts'
import { inTurn, streamThroughTurn, tellTurn } from './index.ts'
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

function modelOf(events: ModelEvent[]) {
  return streamThroughTurn({
    getModel: () => ({
      getResponse: async (_request: unknown) => {
        throw new Error('In a turn a model is asked to stream')
      },
      async *getStreamedResponse(_request: unknown): AsyncGenerator<unknown> {
        yield* events
      },
    }),
  })
}

async function ask(turn: Turn, events: ModelEvent[]): Promise<unknown> {
  let response: unknown
  await inTurn(async () => {
    response = await (await modelOf(events).getModel()).getResponse({ input: 'go' })
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
function open(): { turn: Turn; said: TurnWriter['messages'] } {
  const writer = createTurnWriter({
    turn: { task: '01890000-0000-7000-8000-000000000000', turn: 1, attempt: 1, firstIndex: 0 },
    epoch: 1,
    appender: { append: async () => 'ok' },
    askReopen: async () => null,
    onFenced: () => {},
    onLost: () => {},
  })
  const turn: Pick<Turn, 'send' | 'custom'> & { message: unknown } = {
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
