/** What each document describes, done with Rivulet: the turn runs in this process, and its log is read in the words of the document. */
import { createTaskMessageUpdates } from '@rivulet/views/agentex'
import { createDeltas } from '@rivulet/views/agentkit'
import { createAgentEvents } from '@rivulet/views/coding-agent'
import { createStreamEvents, StreamAccumulator } from '@rivulet/views/mini-claw-code'
import { testTurn } from '@rivulet/worker/testing'
import { expect, test } from 'vitest'
import agentex from './agentex.ts'
import agentkitBook from './agentkit-book.ts'
import agentkitDelta from './agentkit-delta.ts'
import codingAgent from './coding-agent.ts'
import miniClawCode from './mini-claw-code.ts'

test("agentkit's book: chunks fold into parts in order, and interleaved calls do not mix", async () => {
  const { events, messages } = await testTurn(agentkitBook)
  const deltas = events.flatMap(createDeltas())
  expect(deltas.filter(({ type }) => type === 'BeginPart')).toHaveLength(4)
  const committed = deltas.flatMap(each => (each.type === 'CommitPart' ? [each.part] : []))
  expect(committed).toHaveLength(4)
  expect(messages.map(({ content }) => content)).toMatchObject([
    { type: 'reasoning', content: ['A known question.'] },
    { type: 'text', text: 'The answer is 42.' },
    { type: 'tool_request', callId: 'call-7', arguments: { path: 'src/main.rs' } },
    { type: 'tool_request', callId: 'call-8', arguments: { path: 'src/lib.rs' } },
  ])
})

test("agentkit's delta: values that survive JSON, and a commit with the whole part", async () => {
  const { events, messages } = await testTurn(agentkitDelta)
  const deltas = events.flatMap(createDeltas())
  expect(JSON.parse(JSON.stringify(deltas))).toEqual(deltas)
  expect(new Set(deltas.map(({ type }) => type))).toEqual(
    new Set(['BeginPart', 'AppendText', 'SetMetadata', 'ReplaceStructured', 'CommitPart']),
  )
  expect(deltas.flatMap(each => (each.type === 'CommitPart' ? [each.part] : []))).toEqual([
    { kind: 'Text', text: 'Hello, world', metadata: { lang: 'en' } },
    { kind: 'Structured', value: { done: 2 }, metadata: {} },
  ])
  expect(messages).toMatchObject([{ content: { text: 'Hello, world' }, metadata: { lang: 'en' } }, { content: { data: { done: 2 } } }])
})

test('mini-claw-code: accumulated responses are what was streamed, and the next turn continues the history', async () => {
  const { events, messages, text } = await testTurn(miniClawCode, { input: 'What do my notes say?' })
  expect(text).toBe('Let me look. It says: Buy milk.')
  const first = new StreamAccumulator()
  for (const event of events.flatMap(createStreamEvents())) {
    if (event.type === 'Done') break
    first.feed(event)
  }
  expect(first.finish()).toMatchObject({ text: 'Let me look. ', tool_calls: [{ name: 'read_file', arguments: { path: 'notes.txt' } }] })
  const history = [{ author: 'user' as const, content: { type: 'text' as const, text: 'What?', format: 'plain' as const } }, ...messages]
  expect((await testTurn(miniClawCode, { input: 'Again?', history })).text).toBe('As I said: milk.')
})

test('Agentex: every way to stream gives messages with their own index, and a full one is the last of its index', async () => {
  const { events, messages } = await testTurn(agentex)
  const updates = events.flatMap(createTaskMessageUpdates())
  const full = updates.filter(({ type }) => type === 'full').map(({ index }) => index)
  expect(full).toEqual([2, 3, 4, 5])
  const shapes = messages.map(({ index }) => [...new Set(updates.filter(update => update.index === index).map(({ type }) => type))].join())
  expect(shapes).toEqual(['start,delta,done', 'start,delta,done', 'start,delta,full', 'full', 'full', 'full'])
  for (const index of full) expect(updates.findLast(update => update.index === index)?.type).toBe('full')
  expect(messages.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5])
  expect(messages.map(({ content }) => content)).toMatchObject([
    { text: 'Streamed by auto send.' },
    { text: 'NOT SO LOUD' },
    { text: 'The final version' },
    { type: 'tool_request', callId: 'c1' },
    { type: 'tool_response', content: { words: 4 } },
    { type: 'data', data: { done: true } },
  ])
})

test('a coding agent: a call is named, complete, executed and finished, and then the turn of its response ends', async () => {
  const { events } = await testTurn(codingAgent, { input: 'Read it' })
  const types = events.flatMap(createAgentEvents()).map(({ type }) => type)
  const order = types.filter((type, place) => type !== types[place - 1])
  expect(order).toEqual([
    'assistant_text_delta',
    'tool_call_started',
    'tool_call_arguments_delta',
    'tool_call_ready',
    'tool_execution_started',
    'tool_execution_update',
    'tool_execution_finished',
    'turn_finished',
    'assistant_text_delta',
    'turn_finished',
  ])
})
