/** The OpenAI Agents SDK in a turn, with a model on this machine: its two ways to stream, each with both of OpenAI's interfaces. */
import { Agent, OpenAIProvider, Runner, RunState, setTracingDisabled, tool } from '@openai/agents'
import type { Message } from '@rivulet/protocol'
import { defineAgent, type Turn } from '@rivulet/worker'
import {
  fromOpenAiAgents,
  inTurn,
  runWithApprovals,
  streamThroughTurn,
  tellTurn,
  toolError,
  tracedFetch,
  withTurn,
} from '@rivulet/worker/openai-agents'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { watch } from '../support/viewers/viewer.ts'
import { type ModelServer, type Reply, startModelServer } from './model-server.ts'

let platform: Platform

beforeAll(async () => {
  setTracingDisabled(true)
  platform = await startPlatform({ workers: 0 })
})
afterAll(() => platform.close())

const weather = tool({
  name: 'weather',
  description: 'The weather in a city',
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `Rain in ${city}`,
})

const replies: Reply[] = [
  { think: ['I should ', 'look.'], say: ['Let me ', 'see.'], call: { id: 'c1', name: 'weather', arguments: ['{"city":', '"Oslo"}'] } },
  { say: ['Take ', 'an ', 'umbrella.'] },
]

const said = [
  { content: { type: 'reasoning' }, status: 'complete' },
  { content: { type: 'text', text: 'Let me see.' }, status: 'complete' },
  {
    content: { type: 'tool_request', callId: 'c1', name: 'weather', arguments: { city: 'Oslo' } },
    status: 'complete',
    stopReason: 'tool_use',
    usage: { inputTokens: 5, outputTokens: 3, totalTokens: 8 },
  },
  { content: { type: 'tool_response', callId: 'c1', name: 'weather', content: 'Rain in Oslo', isError: false }, status: 'complete' },
  { content: { type: 'text', text: 'Take an umbrella.' }, stopReason: 'stop', usage: { totalTokens: 8 } },
]

describe.each([
  ['Chat Completions', false],
  ['Responses', true],
])('over %s', (api, useResponses) => {
  test.each([
    ['the provider alone', false, false],
    ['the provider alone, in a run that is streamed', false, true],
    ['provider and hooks', true, false],
    ['provider and hooks, in a run that is streamed', true, true],
  ])('%s: everything is said once, and the run has its result', async (_, withHooks, stream) => {
    const model = await startModelServer(replies)
    const runner = createRunner(model, useResponses)
    if (withHooks) tellTurn(runner)
    let output: unknown
    let tokens = 0
    const { task, messages } = await play(async turn => {
      const result = await run(turn)
      output = result.finalOutput
      tokens = result.state.usage.totalTokens
    })
    expect(messages).toMatchObject(said)
    const thought = messages[0]?.content
    expect(thought).toMatchObject(useResponses ? { summary: ['I should look.'] } : { content: ['I should look.'] })
    expect(output).toBe('Take an umbrella.')
    expect(tokens).toBe(16)
    const log = await platform.log(task)
    expect(notices(log)).toEqual(withHooks ? ['agent.started', 'agent.finished'] : [])
    // Word by word, not when all was said.
    expect(log.filter(({ event }) => event.type === 'message.delta').length).toBeGreaterThan(3)
    expect(await faultsOf(platform, task)).toEqual([])

    async function run(turn: Turn) {
      const agent = new Agent({ name: 'Assistant', model: 'm', tools: [weather] })
      if (!stream) return runner.run(agent, 'Do I need an umbrella?', { signal: turn.signal })
      const result = await runner.run(agent, 'Do I need an umbrella?', { stream: true, signal: turn.signal })
      for await (const _event of result);
      await result.completed
      return result
    }
  })

  test(`a streamed run is a generator that a handler yields again, with trace headers, ${api}`, async () => {
    const model = await startModelServer(replies)
    const openAIClient = new OpenAI({ apiKey: 'none', baseURL: model.url, fetch: tracedFetch })
    const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient, useResponses }) })
    const agent = new Agent({ name: 'Assistant', model: 'm', tools: [weather] })
    const name = `generator-${useResponses}`
    let traceparent = ''
    const generator = defineAgent(name, async function* (turn) {
      traceparent = turn.span.traceparent
      const run = await withTurn(turn, () => runner.run(agent, 'Do I need an umbrella?', { stream: true, signal: turn.signal }))
      yield* fromOpenAiAgents(run, turn)
    })
    await startOwnWorker(platform, [generator])
    const { task, messages } = await platform.client.finishedTask({ agent: name, maxAttempts: 1 })
    expect(messages).toMatchObject(said)
    expect(await faultsOf(platform, task.id)).toEqual([])
    const traces = model.headers.map(headers => String(headers.traceparent).slice(0, 35))
    expect(traces).toEqual([traceparent.slice(0, 35), traceparent.slice(0, 35)])
  })

  test(`hooks without the provider tell the tools, ${api}`, async () => {
    const runner = new Runner({ modelProvider: plainProvider(await startModelServer(replies), useResponses) })
    tellTurn(runner)
    // Without our provider nothing asks the model to stream, so the server is asked for a stream by the run.
    const { messages } = await play(async turn => {
      const agent = new Agent({ name: 'Assistant', model: 'm', tools: [weather] })
      const result = await runner.run(agent, 'Do I need an umbrella?', { stream: true, signal: turn.signal })
      await result.completed
    })
    expect(messages.map(({ content }) => content)).toMatchObject([
      { type: 'tool_request', callId: 'c1', arguments: { city: 'Oslo' } },
      { type: 'tool_response', callId: 'c1', content: 'Rain in Oslo' },
    ])
  })
})

describe('a tool that needs approval', () => {
  const pay = { id: 'c1', name: 'pay', arguments: ['{"amount":5}'] }

  test.each([
    ['accept', ['paid 5'], 'paid 5'],
    ['decline', [], 'Declined: too much'],
  ])('parks the turn, and goes on after %s without another call of the model', async (action, expected, result) => {
    const paid: string[] = []
    const model = await startModelServer([{ say: ['I will pay.'], call: pay }, { say: ['Done.'] }])
    const runner = createRunner(model, false)
    tellTurn(runner)
    const payTool = tool({
      name: 'pay',
      description: 'Pays',
      parameters: z.object({ amount: z.number() }),
      needsApproval: true,
      execute: async ({ amount }) => {
        paid.push(`paid ${amount}`)
        return `paid ${amount}`
      },
    })
    const agent = new Agent({ name: 'Clerk', model: 'm', tools: [payTool] })
    let output: unknown
    await startOwnWorker(platform, [
      defineAgent(
        `payer-${action}`,
        inTurn(async turn => {
          output = await runWithApprovals<RunState<undefined, typeof agent>>(turn, {
            run: state => runner.run(agent, state ?? 'Pay, please', { signal: turn.signal }),
            restore: text => RunState.fromString(agent, text),
            ask: { hold: 0, assignee: 'finance' },
          })
        }),
      ),
    ])
    const { task } = await platform.client.createTask({ agent: `payer-${action}` })
    const { turns } = await platform.client.waitForTask(task.id, ({ turns }) => turns[0]?.waits?.length === 1)
    const [wait] = turns[0]?.waits ?? []
    expect(wait).toMatchObject({ kind: 'approval', tool: 'pay', callId: 'c1', arguments: { amount: 5 }, assignee: 'finance' })
    await until('the turn has parked', async () => (await platform.pg.query("select from turns where status = 'waiting'")).rowCount === 1)
    expect(paid).toEqual([])
    await platform.client.post(`/v1/tasks/${task.id}/waits/${wait?.id}/answer`, { action, comment: 'too much' })
    await platform.client.waitForEnd(task.id)
    expect((await platform.client.messages(task.id)).map(({ content }) => content)).toMatchObject([
      { text: 'I will pay.' },
      { type: 'tool_request', callId: 'c1', arguments: { amount: 5 } },
      { type: 'tool_response', callId: 'c1', content: result },
      { text: 'Done.' },
    ])
    expect([paid, output, model.requests.length]).toEqual([expected, 'Done.', 2])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })
})

test('a response that reached its limit has the stop reason length', async () => {
  const model = await startModelServer([{ say: ['As far ', 'as'], isIncomplete: true }])
  const agent = new Agent({ name: 'Assistant', model: 'm' })
  const generator = defineAgent('cut-off', async function* (turn) {
    yield* fromOpenAiAgents(await new Runner({ modelProvider: plainProvider(model, true) }).run(agent, 'go', { stream: true }), turn)
  })
  await startOwnWorker(platform, [generator])
  const { turns, messages } = await platform.client.finishedTask({ agent: 'cut-off', maxAttempts: 1 })
  expect(turns).toMatchObject([{ status: 'completed', stopReason: 'length' }])
  expect(messages).toMatchObject([{ content: { text: 'As far as' }, status: 'complete', stopReason: 'length' }])
})

test('a handoff is streamed, with its call and its result', async () => {
  const model = await startModelServer([{ call: { id: 'h1', name: 'transfer_to_Poet', arguments: ['{}'] } }, { say: ['Roses …'] }])
  const runner = createRunner(model, false)
  tellTurn(runner)
  const { task, messages } = await play(async () => {
    const poet = new Agent({ name: 'Poet', model: 'm' })
    const result = await runner.run(Agent.create({ name: 'Clerk', model: 'm', handoffs: [poet] }), 'A poem, please')
    expect(result.lastAgent?.name).toBe('Poet')
  })
  expect(messages.map(({ content }) => content)).toMatchObject([
    { type: 'tool_request', callId: 'h1', name: 'transfer_to_Poet' },
    { type: 'tool_response', callId: 'h1' },
    { type: 'text', text: 'Roses …' },
  ])
  const log = await platform.log(task)
  expect(notices(log)).toEqual(['agent.started', 'agent.handoff', 'agent.started', 'agent.finished'])
  expect(log.map(({ event }) => event)).toContainEqual(
    expect.objectContaining({ type: 'custom', name: 'agent.handoff', data: { from: 'Clerk', to: 'Poet' } }),
  )
})

test('turns that run side by side with one runner do not hear each other', async () => {
  const model = await startModelServer(request => {
    const asked = JSON.stringify(request.messages)
    const name = /"I am (\w+)"/.exec(asked)?.[1] ?? ''
    const hasResponse = asked.includes('"tool"')
    if (hasResponse) return { say: ['Hello ', `${name}`] }
    return {
      say: Array.from({ length: 20 }, () => `${name} `),
      call: { id: `c-${name}`, name: 'weather', arguments: [`{"city":"${name}"}`] },
    }
  })
  const runner = createRunner(model, false)
  tellTurn(runner)
  const agent = new Agent({ name: 'Assistant', model: 'm', tools: [weather] })
  const names = Array.from({ length: 8 }, (_, place) => `user${place}`)
  await startOwnWorker(platform, [
    defineAgent(
      'side-by-side',
      inTurn(async turn => {
        await runner.run(agent, turn.input?.type === 'text' ? turn.input.text : '')
      }),
    ),
  ])
  const ended = await Promise.all(names.map(name => platform.client.finishedTask({ agent: 'side-by-side', input: `I am ${name}` })))
  for (const [place, name] of names.entries()) {
    expect(ended[place]?.messages.slice(1).map(({ content }) => content)).toMatchObject([
      { text: `${name} `.repeat(20) },
      { type: 'tool_request', callId: `c-${name}` },
      { type: 'tool_response', callId: `c-${name}`, content: `Rain in ${name}` },
      { text: `Hello ${name}` },
    ])
  }
})

describe('a run that stops at its tool', () => {
  const only: Reply[] = [{ call: { id: 'c1', name: 'weather', arguments: ['{"city":"Oslo"}'] } }]
  const agent = new Agent({ name: 'Assistant', model: 'm', tools: [weather], toolUseBehavior: 'stop_on_first_tool' })

  test.each([
    ['is streamed completely with the hooks', true, ['tool_request', 'tool_response']],
    ['leaves its answer untold with the provider alone, which never sees it', false, ['tool_request']],
  ])('%s', async (_, withHooks, types) => {
    const runner = createRunner(await startModelServer(only), false)
    if (withHooks) tellTurn(runner)
    let output: unknown
    const { messages, status } = await play(async () => {
      output = (await runner.run(agent, 'Rain?')).finalOutput
    })
    expect(messages.map(({ content }) => content.type)).toEqual(types)
    expect([output, status]).toEqual(['Rain in Oslo', 'completed'])
  })
})

describe('a tool that throws', () => {
  const failing = {
    name: 'weather',
    description: 'The weather in a city',
    parameters: z.object({ city: z.string() }),
    execute: async () => {
      throw new Error('no such city')
    },
  }

  test.each([
    ['is answered with what the SDK tells the model, as an error', tool(failing), 'completed', /error/i],
    ['is answered with its message', tool({ ...failing, errorFunction: toolError }), 'completed', /^Error: no such city$/],
    ['and whose error is not converted to a result fails the turn', tool({ ...failing, errorFunction: null }), 'failed', /error/i],
  ])('%s', async (_, broken, status, sentence) => {
    const runner = createRunner(await startModelServer(replies), false)
    tellTurn(runner)
    const ended = await play(async () => {
      await runner.run(new Agent({ name: 'Assistant', model: 'm', tools: [broken] }), 'Rain?')
    })
    expect(ended.status).toBe(status)
    const responses = ended.messages.filter(({ content }) => content.type === 'tool_response')
    expect(responses).toMatchObject([{ status: 'complete', content: { content: expect.stringMatching(sentence), isError: true } }])
  })
})

test('a model that breaks off fails the turn, and what it said stays, once', async () => {
  const model = await startModelServer(() => ({ say: ['I was ', 'saying'], breaksOff: true }))
  const runner = createRunner(model, false)
  const { messages, status } = await play(async () => {
    await runner.run(new Agent({ name: 'Assistant', model: 'm' }), 'go')
  })
  expect(status).toBe('failed')
  expect(messages).toMatchObject([{ content: { text: 'I was saying' }, status: 'failed' }])
})

test('outside of a turn a provider is what it was', async () => {
  const runner = createRunner(await startModelServer([{ say: ['Hello'] }]), false)
  tellTurn(runner)
  const result = await runner.run(new Agent({ name: 'Assistant', model: 'm' }), 'go', { stream: true })
  await result.completed
  expect(result.finalOutput).toBe('Hello')
})

function plainProvider({ url }: ModelServer, useResponses: boolean): OpenAIProvider {
  return new OpenAIProvider({ apiKey: 'none', baseURL: url, useResponses })
}

function createRunner(model: ModelServer, useResponses: boolean): Runner {
  return new Runner({ modelProvider: streamThroughTurn(plainProvider(model, useResponses)) })
}

let count = 0

/** One turn of an agent that does this, from outside. */
async function play(handle: (turn: Turn) => Promise<void>): Promise<{ task: string; status: string; messages: Message[] }> {
  count += 1
  const name = `agents-${count}`
  await startOwnWorker(platform, [defineAgent(name, inTurn(handle))])
  const { task } = await platform.client.createTask({ agent: name, maxAttempts: 1 })
  const viewer = watch(task.id, { urls: platform.urls })
  await viewer.ended
  const detail = await platform.client.detail(task.id)
  return { task: task.id, status: detail.task.status, messages: await platform.client.messages(task.id) }
}

function notices(log: Awaited<ReturnType<Platform['log']>>): string[] {
  return log.flatMap(({ event }) => (event.type === 'custom' ? [event.name] : []))
}
