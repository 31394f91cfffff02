/** A history after any interruption: every call has one response, where a model expects it. */
import { type Content, type Message, text, toolRequest, toolResponse } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { withWholeCalls } from './whole-calls.ts'

const history = (...contents: Content[]) =>
  contents.map((content, index) => ({ index, author: 'agent', content, status: 'complete' }) as Message)
const shown = (messages: Message[]) =>
  messages.map(({ content }) =>
    content.type === 'tool_response'
      ? `${content.callId}: ${content.content}${content.isError ? '!' : ''}`
      : content.type === 'tool_request'
        ? content.callId
        : 'text',
  )

test('a call without a response gets one that says that it was interrupted, before the user speaks again', () => {
  const cut = history(toolRequest('a', 'look'), toolRequest('b', 'look'), toolResponse('a', 'look', 'seen'))
  const next = { ...history(text('next'))[0], author: 'user' } as Message
  const [...rest] = history(toolRequest('c', 'look'))
  expect(shown(withWholeCalls([...cut, next, ...rest]))).toEqual(['a', 'b', 'a: seen', 'b: interrupted!', 'text', 'c', 'c: interrupted!'])
})

test('a response stays where it is, also when the agent has said something since its call', () => {
  const apart = history(toolRequest('a', 'look'), text('a moment'), toolResponse('a', 'look', 'seen'))
  expect(withWholeCalls(apart)).toEqual(apart)
})

test('a response without a call, or a second one, is left out; what is whole stays as it is', () => {
  const odd = history(
    toolResponse('x', 'look', 'seen'),
    toolRequest('a', 'look'),
    toolResponse('a', 'look', 1),
    toolResponse('a', 'look', 2),
  )
  expect(shown(withWholeCalls(odd))).toEqual(['a', 'a: 1'])
  const whole = history(text('hello'), toolRequest('a', 'look'), toolResponse('a', 'look', 1), text('done'))
  expect(withWholeCalls(whole)).toEqual(whole)
})
