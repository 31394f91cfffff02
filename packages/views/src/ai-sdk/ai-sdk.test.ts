/** Stored messages as the AI SDK's UI messages. A test of the API compares them with the SDK's reading of the stream; test/sdks tests that the SDK accepts them. */
import {
  createTurnComposer,
  data,
  delta,
  full,
  type Message,
  media,
  reasoning,
  start,
  text,
  toolRequest,
  toolResponse,
  type Update,
} from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { task } from '../../test/task-log.ts'
import { toUiMessages } from './ai-sdk.ts'

test('a turn is its input and one assistant message, with stable ids', () => {
  const messages = [
    ...messagesOf(1, 0, [full(0, 'Hello?')], 'user'),
    ...messagesOf(1, 1, [
      full(0, reasoning(['short'], ['long'])),
      full(1, 'Hello.'),
      full(2, data({ a: 1 })),
      full(3, media('image/png', 'AAEC')),
    ]),
    ...messagesOf(2, 5, [full(0, media('image/png', 'AAEC'))], 'user'),
    ...messagesOf(2, 6, [full(0, 'Nice.')]),
  ]
  expect(toUiMessages(messages)).toEqual([
    { id: `${task}:1:0`, role: 'user', metadata: { task, turn: 1 }, parts: [{ type: 'text', text: 'Hello?', state: 'done' }] },
    {
      id: `${task}:1`,
      role: 'assistant',
      metadata: { task, turn: 1 },
      parts: [
        { type: 'reasoning', id: '1.summary.0', text: 'short', state: 'done' },
        { type: 'reasoning', id: '1.content.0', text: 'long', state: 'done' },
        { type: 'text', text: 'Hello.', state: 'done' },
        { type: 'data-json', id: '3', data: { a: 1 } },
        { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AAEC' },
      ],
    },
    expect.objectContaining({ id: `${task}:2:5`, role: 'user', parts: [expect.objectContaining({ type: 'file' })] }),
    expect.objectContaining({ id: `${task}:2`, role: 'assistant', parts: [{ type: 'text', text: 'Nice.', state: 'done' }] }),
  ])
})

test('a call and its response are one part; the sources of a text follow it', () => {
  const cited = full(2, text('Rain.'), {
    citations: [
      { url: 'https://a.example', title: 'A' },
      { mediaType: 'text/plain', filename: 'b' },
    ],
  })
  const [reply] = toUiMessages(
    messagesOf(1, 0, [full(0, toolRequest('c', 'weather', { city: 'Oslo' })), full(1, toolResponse('c', 'weather', 'rain')), cited]),
  )
  expect(reply?.parts).toEqual([
    {
      ...{ type: 'dynamic-tool', toolCallId: 'c', toolName: 'weather', providerExecuted: true },
      ...{ state: 'output-available', input: { city: 'Oslo' }, output: 'rain' },
    },
    { type: 'text', text: 'Rain.', state: 'done' },
    { type: 'source-url', sourceId: '2.0', url: 'https://a.example', title: 'A' },
    { type: 'source-document', sourceId: '2.1', mediaType: 'text/plain', title: '', filename: 'b' },
  ])
})

test.each<[string, Update[], object]>([
  [
    'a call that failed',
    [full(0, toolRequest('c', 'f')), full(1, toolResponse('c', 'f', 'no', true))],
    { state: 'output-error', errorText: 'no' },
  ],
  [
    'a response without a call',
    [full(0, toolResponse('c', 'f', 'yes'))],
    { state: 'output-available', toolName: 'f', input: {}, output: 'yes' },
  ],
  ['a call that is running', [full(0, toolRequest('c', 'f'))], { state: 'input-available', input: {} }],
  [
    'a call whose error is not closed yet',
    [full(0, toolRequest('c', 'f')), start(1, toolResponse('c', 'f', 'no', true))],
    { state: 'input-available', input: {} },
  ],
  [
    'a call with incomplete arguments',
    [start(0, toolRequest('c', 'f')), delta(0, { type: 'tool_request', text: '{' })],
    { state: 'input-streaming' },
  ],
])('%s is one part', (_, updates, part) => {
  expect(toUiMessages(messagesOf(1, 0, updates))[0]?.parts).toMatchObject([{ type: 'dynamic-tool', toolCallId: 'c', ...part }])
})

test('calls of other turns may have the same id', () => {
  const [first, second] = [1, 2].map(turnNumber =>
    messagesOf(turnNumber, turnNumber * 2, [full(0, toolRequest('c', 'f')), full(1, toolResponse('c', 'f', turnNumber))]),
  )
  const parts = toUiMessages([...(first ?? []), ...(second ?? [])]).flatMap(message => message.parts)
  expect(parts).toMatchObject([
    { toolCallId: 'c', output: 1 },
    { toolCallId: 'c', output: 2 },
  ])
})

function messagesOf(turnNumber: number, firstIndex: number, updates: Update[], author: Message['author'] = 'agent'): Message[] {
  const composer = createTurnComposer({ task, turn: turnNumber, attempt: 1, firstIndex })
  for (const update of updates) composer.compose(update)
  return composer.messages().map(message => ({ ...message, author }))
}
