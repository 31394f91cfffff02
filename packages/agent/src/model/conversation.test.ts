/** The request that a history becomes, for each provider. */
import { type Content, data, media, reasoning, text, toolRequest, toolResponse } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { anthropicBody } from '../providers/anthropic/anthropic-messages.ts'
import { openaiBody } from '../providers/openai/openai-messages.ts'
import { system, user } from './conversation.ts'
import type { HistoryMessage } from './model.ts'

const lost = 'The call was interrupted before it had a result.'

describe('every call is followed by exactly one result', () => {
  test('in the order of the history', () => {
    const history = [user('go'), agent(text('ok')), ask('a'), ask('b'), response('a', 1), response('b', { x: 2 }), agent(text('done'))]
    expect(openai(history)).toEqual([
      { role: 'user', content: 'go' },
      { role: 'assistant', content: 'ok', tool_calls: [call('a'), call('b')] },
      { role: 'tool', tool_call_id: 'a', content: '1' },
      { role: 'tool', tool_call_id: 'b', content: '{"x":2}' },
      { role: 'assistant', content: 'done' },
    ])
    expect(anthropic(history)).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'go' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'ok' },
          { type: 'tool_use', id: 'a', name: 'f', input: { n: 1 } },
          { type: 'tool_use', id: 'b', name: 'f', input: { n: 1 } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: '1' },
          { type: 'tool_result', tool_use_id: 'b', content: '{"x":2}' },
        ],
      },
      { role: 'assistant', content: [{ type: 'text', text: 'done' }] },
    ])
  })

  test('a call without a result gets an error as its result', () => {
    expect(openai([user('go'), ask('a'), user('and?')])).toEqual([
      { role: 'user', content: 'go' },
      { role: 'assistant', content: null, tool_calls: [call('a')] },
      { role: 'tool', tool_call_id: 'a', content: `Error: ${lost}` },
      { role: 'user', content: 'and?' },
    ])
    expect(anthropic([user('go'), ask('a'), user('and?')]).at(-1)).toEqual({
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'a', content: lost, is_error: true },
        { type: 'text', text: 'and?' },
      ],
    })
  })

  test('a result without a call is dropped, and so is the second of two results', () => {
    expect(openai([response('x', 'orphan'), user('go'), ask('a'), response('a', 'one'), response('a', 'two')])).toEqual([
      { role: 'user', content: 'go' },
      { role: 'assistant', content: null, tool_calls: [call('a')] },
      { role: 'tool', tool_call_id: 'a', content: 'one' },
    ])
  })

  test('a late result is moved behind its call', () => {
    expect(openai([ask('a'), user('well?'), response('a', 'late')]).map(({ role }) => role)).toEqual(['assistant', 'tool', 'user'])
  })

  test('a reused id pairs with the next result', () => {
    const results = openai([ask('a'), response('a', 'one'), ask('a'), response('a', 'two')]).filter(({ role }) => role === 'tool')
    expect(results.map(({ content }) => content)).toEqual(['one', 'two'])
  })
})

describe('a request leaves out', () => {
  test('messages that were aborted, failed or are not finished', () => {
    const unfinished = (['aborted', 'failed', 'streaming'] as const).map(status => ({ ...agent(text('half')), status }))
    expect(openai([user('go'), ...unfinished, { ...ask('a'), status: 'aborted' }, response('a', 'x'), user('again')])).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'go' },
          { type: 'text', text: 'again' },
        ],
      },
    ])
  })

  test('empty texts, and a message that is only reasoning', () => {
    const history = [user('go'), agent(text('')), agent(reasoning([], ['hm'])), user('')]
    expect(openai(history)).toEqual([{ role: 'user', content: 'go' }])
    expect(anthropic(history)).toEqual([{ role: 'user', content: [{ type: 'text', text: 'go' }] }])
  })
})

describe('a request returns to its provider', () => {
  test('signed and redacted thinking', () => {
    const history = [
      user('go'),
      agent(reasoning([], ['hm']), { anthropic: { signature: 's' } }),
      agent(reasoning(), { anthropic: { redacted: 'r' } }),
      agent(text('ok')),
    ]
    expect(anthropic(history)[1]).toEqual({
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm', signature: 's' },
        { type: 'redacted_thinking', data: 'r' },
        { type: 'text', text: 'ok' },
      ],
    })
  })

  test('encrypted reasoning of a call', () => {
    const details = [{ type: 'reasoning.encrypted', id: 'a', data: 'x' }]
    expect(openai([{ ...ask('a'), metadata: { openai: { reasoningDetails: details } } }])[0]).toMatchObject({ reasoning_details: details })
  })
})

test('instructions, data and images take each provider’s form', () => {
  const history = [
    system('Be kind.'),
    { author: 'user', content: data({ n: 1 }) },
    { author: 'user', content: media('image/png', 'AAEC') },
  ] as HistoryMessage[]
  expect(openai(history)).toEqual([
    { role: 'system', content: 'Be kind.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: '{"n":1}' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAEC' } },
      ],
    },
  ])
  const body = anthropicBody('m', { messages: history, system: 'Be brief.', maxOutputTokens: 1 })
  expect(body).toMatchObject({
    system: 'Be brief.\n\nBe kind.',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: '{"n":1}' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAEC' } },
        ],
      },
    ],
  })
})

function openai(messages: HistoryMessage[]) {
  return openaiBody('m', { messages }).messages as Record<string, unknown>[]
}

function anthropic(messages: HistoryMessage[]) {
  return anthropicBody('m', { messages, maxOutputTokens: 1 }).messages as Record<string, unknown>[]
}

function agent(content: Content, metadata = {}): HistoryMessage {
  return { author: 'agent', content, metadata, status: 'complete' }
}

function ask(callId: string): HistoryMessage {
  return agent(toolRequest(callId, 'f', { n: 1 }))
}

function response(callId: string, value: Parameters<typeof toolResponse>[2]): HistoryMessage {
  return agent(toolResponse(callId, 'f', value))
}

function call(id: string) {
  return { id, type: 'function', function: { name: 'f', arguments: '{"n":1}' } }
}
