/** Agents are tested without a platform: a scripted model plays the replies, and the turn returns the messages that follow from them. */
import { call, runAgent, scriptedModel, user } from '@rivulet/agent'
import { testTurn } from '@rivulet/worker/testing'
import { expect, test } from 'vitest'
import tools, { countWords } from './tools.ts'

test('the agent tells how many words it counted', async () => {
  const { status, text, messages } = await testTurn(tools, { input: 'one two three' })
  expect({ status, text }).toEqual({ status: 'completed', text: 'Let me count. I counted: {"words":3}.' })
  expect(messages.map(({ content }) => content.type)).toEqual(['text', 'tool_request', 'tool_response', 'text'])
})

test('the agent goes on when its model counts nothing', async () => {
  const model = scriptedModel(['I do not count.'])
  expect(await testTurn(tools, { input: 'one two three', model })).toMatchObject({ status: 'completed', text: 'I do not count.' })
})

test('the model gets the number of words', async () => {
  const model = scriptedModel([[call('count_words', { text: 'one two three' })], 'Three.'])
  const { text, messages, steps } = await runAgent({ model, tools: [countWords], messages: [user('How many?')] }).result
  expect({ text, steps }).toEqual({ text: 'Three.', steps: 2 })
  expect(messages.map(({ content }) => content)).toContainEqual(expect.objectContaining({ type: 'tool_response', content: { words: 3 } }))
})

test('a call with invalid arguments returns an error to the model, and the run continues', async () => {
  const model = scriptedModel([[call('count_words', { text: 3 })], 'I am sorry.'])
  const { text, messages } = await runAgent({ model, tools: [countWords], messages: [user('How many?')] }).result
  expect(text).toBe('I am sorry.')
  expect(messages.map(({ content }) => content)).toContainEqual(expect.objectContaining({ type: 'tool_response', isError: true }))
})
