/** Agents are tested without a platform: a scripted model plays the replies, and the run returns the messages that follow from them. */
import { call, runAgent, scriptedModel, user } from '@rivulet/agent'
import { expect, test } from 'vitest'
import { countWords } from './tools.ts'

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
