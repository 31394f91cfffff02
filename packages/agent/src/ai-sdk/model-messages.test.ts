import { media, reasoning, text, toolRequest, toolResponse } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { system, user } from '../model/conversation.ts'
import type { HistoryMessage } from '../model/model.ts'
import { toModelMessages } from './model-messages.ts'

test('a history is a conversation of the AI SDK, with each call followed by its result', () => {
  const history: HistoryMessage[] = [
    system('Be brief.'),
    user('What is the weather?'),
    { author: 'user', content: { ...media('image/png', 'AAEC'), name: 'sky.png' } },
    agent(reasoning([], ['Hm.'])),
    agent(text('Let me see.')),
    agent(toolRequest('c1', 'weather', { city: 'Oslo' })),
    agent(toolRequest('c2', 'weather', { city: 'Rome' })),
    agent(toolRequest('c3', 'weather', {})),
    agent(toolResponse('c2', 'weather', 'no such city', true)),
    agent(toolResponse('c1', 'weather', { rain: true })),
    { ...agent(text('half')), status: 'aborted' },
  ]
  expect(toModelMessages(history)).toEqual([
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is the weather?' },
        { type: 'file', mediaType: 'image/png', data: 'AAEC', filename: 'sky.png' },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'text', text: 'Let me see.' },
        { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input: { city: 'Oslo' } },
        { type: 'tool-call', toolCallId: 'c2', toolName: 'weather', input: { city: 'Rome' } },
        { type: 'tool-call', toolCallId: 'c3', toolName: 'weather', input: {} },
      ],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: 'c1', toolName: 'weather', output: { type: 'json', value: { rain: true } } },
        { type: 'tool-result', toolCallId: 'c2', toolName: 'weather', output: { type: 'error-text', value: 'no such city' } },
        { type: 'tool-result', toolCallId: 'c3', toolName: 'weather', output: { type: 'error-text', value: expect.any(String) } },
      ],
    },
  ])
})

test('a picture by its address is a URL, and a stored file is named', () => {
  const history: HistoryMessage[] = [
    { author: 'user', content: { type: 'media', mimeType: 'image/png', url: 'https://a.example/sky.png' } },
    { author: 'user', content: { type: 'media', mimeType: 'text/csv', file: '01890000-0000-7000-8000-000000000000', name: 'a.csv' } },
  ]
  expect(toModelMessages(history)).toEqual([
    {
      role: 'user',
      content: [
        { type: 'file', mediaType: 'image/png', data: new URL('https://a.example/sky.png') },
        { type: 'text', text: '[file a.csv, text/csv]' },
      ],
    },
  ])
})

function agent(content: HistoryMessage['content']): HistoryMessage {
  return { author: 'agent', content }
}
