/** A runner of another SDK in our turns: one provider and one set of hooks for a whole process, known by their shape alone. */
import { EventEmitter } from 'node:events'
import type { Message } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { inTurn, type RunnerLike, streamThroughTurn, tellTurn } from '@rivulet/worker/openai-agents'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

const weather = { type: 'function_call', callId: 'c1', name: 'weather', arguments: '{"city":"Oslo"}' }

/** Says what it is asked, word by word, and lets others run in between. */
const parrot = {
  getResponse: () => Promise.reject(new Error('never asked')),
  async *getStreamedResponse({ input }: { input: string }) {
    for (const word of input.split(' ')) {
      yield { type: 'output_text_delta', delta: `${word} ` }
      await new Promise(resolve => setTimeout(resolve, 1))
    }
    const content = [{ type: 'output_text', text: `${input} ` }]
    yield {
      type: 'response_done',
      response: { id: 'r', output: [{ type: 'message', content }], usage: { inputTokens: 1, outputTokens: 2 } },
    }
  },
}

const asker = {
  ...parrot,
  async *getStreamedResponse() {
    yield { type: 'output_text_delta', delta: 'Let me ask.' }
    const said = { type: 'message', content: [{ type: 'output_text', text: 'Let me ask.' }] }
    yield { type: 'response_done', response: { output: [said, weather] } }
  },
}

test('a provider streams through the turn, and its caller still gets the whole response', async () => {
  let response: unknown
  const { messages, log } = await run('provider', async () => {
    const model = await streamThroughTurn({ getModel: () => parrot }).getModel()
    response = await (model.getResponse as (request: unknown) => Promise<unknown>)({ input: 'one two three' })
  })
  expect(messages.map(textOf)).toEqual(['one two three '])
  expect(log.some(type => type === 'message.delta')).toBe(true)
  expect(response).toMatchObject({
    responseId: 'r',
    output: [{ type: 'message' }],
    usage: { requests: 1, inputTokens: 1, outputTokens: 2 },
  })
})

test('the provider streams the output of the model, the hooks stream tools and handoffs, and nothing is sent twice', async () => {
  const runner = new EventEmitter()
  tellTurn(runner as unknown as RunnerLike)
  const { messages, notices } = await run('hooks', async () => {
    const model = await streamThroughTurn({ getModel: () => asker }).getModel()
    for await (const _ of (model.getStreamedResponse as (request: unknown) => AsyncIterable<unknown>)({ input: [] }));
    runner.emit('agent_tool_start', null, { name: 'a' }, { name: 'weather' }, { toolCall: weather })
    runner.emit('agent_tool_end', null, { name: 'a' }, { name: 'weather' }, 'rain', { toolCall: weather })
    runner.emit('agent_handoff', null, { name: 'a' }, { name: 'b' })
  })
  expect(messages.map(({ content, status }) => [content.type, status])).toEqual([
    ['text', 'complete'],
    ['tool_request', 'complete'],
    ['tool_response', 'complete'],
  ])
  expect(messages[1]?.content).toMatchObject({ callId: 'c1', arguments: { city: 'Oslo' } })
  expect(messages[2]?.content).toMatchObject({ callId: 'c1', content: 'rain' })
  expect(notices).toEqual([['agent.handoff', { from: 'a', to: 'b' }]])
})

test('turns that run at the same time share the provider, and none hears another', async () => {
  const provider = streamThroughTurn({ getModel: () => parrot })
  const agent = defineAgent(
    'shared',
    inTurn(async turn => {
      const model = await provider.getModel()
      const input = turn.input?.type === 'text' ? turn.input.text : ''
      await (model.getResponse as (request: unknown) => Promise<unknown>)({ input })
    }),
  )
  await startOwnWorker(platform, [agent], { concurrency: 20 })
  const inputs = Array.from({ length: 20 }, (_, i) => Array.from({ length: 30 }, (_, k) => `${i}.${k}`).join(' '))
  const finished = await Promise.all(inputs.map(input => platform.client.finishedTask({ agent: 'shared', input, maxAttempts: 1 })))
  expect(finished.map(({ messages }) => messages.slice(1).map(textOf))).toEqual(inputs.map(input => [`${input} `]))
})

/** A turn of an agent of this test's own: its messages, the types in its log, and its notices. */
async function run(agent: string, act: () => Promise<void>) {
  await startOwnWorker(platform, [defineAgent(agent, inTurn(act))])
  const { task, turns, messages } = await platform.client.finishedTask({ agent, maxAttempts: 1 })
  expect(turns).toMatchObject([{ status: 'completed' }])
  expect(await faultsOf(platform, task.id)).toEqual([])
  const events = (await platform.log(task.id)).map(({ event }) => event)
  return {
    messages,
    log: events.map(({ type }) => type),
    notices: events.flatMap(event => (event.type === 'custom' ? [[event.name, event.data]] : [])),
  }
}

function textOf({ content }: Message): string | null {
  return content.type === 'text' ? content.text : null
}
