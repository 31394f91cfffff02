/** A model with a tool: the loop asks the model, runs the tools that it calls, and asks again, until the model returns its answer. */
import { call, defineTool, say, scriptedModel } from '@rivulet/agent'
import { defineAgent } from '@rivulet/worker'
import { z } from 'zod'

export const countWords = defineTool({
  name: 'count_words',
  description: 'Counts the words of a text',
  input: z.object({ text: z.string() }),
  run: ({ text }, { progress }) => {
    progress('Counting …')
    return { words: text.split(/\s+/).filter(Boolean).length }
  },
})

// Plays a script, offline: first it calls the tool, then it replies with the result.
const model = scriptedModel(({ messages }) => {
  const { content } = messages.at(-1) ?? {}
  if (content?.type === 'tool_response') return [say(`I counted: ${JSON.stringify(content.content)}.`)]
  return [say('Let me count. '), call('count_words', { text: content?.type === 'text' ? content.text : '' })]
})

export default defineAgent(
  'tools',
  async turn => {
    await turn.run({ model, tools: [countWords] })
  },
  { description: 'Counts words, with a tool' },
)
