/** The streaming agent of mini-claw-code: a provider that streams, a loop that runs the tools that the model calls, and a history that the next turn continues. */
import { call, defineTool, say, scriptedModel } from '@rivulet/agent'
import { defineAgent } from '@rivulet/worker'
import { z } from 'zod'

const files: Record<string, string> = { 'notes.txt': 'Buy milk.' }

const readFile = defineTool({
  name: 'read_file',
  description: 'Reads a file',
  input: z.object({ path: z.string() }),
  run: ({ path }) => files[path] ?? Promise.reject(new Error(`There is no file ${path}`)),
})

/** A mock provider: character by character, and each call as a start and one delta. */
const provider = scriptedModel(({ messages }) => {
  const asked = messages.filter(({ author }) => author === 'user').length
  const { content } = messages.at(-1) ?? {}
  if (content?.type === 'tool_response') return [say(`It says: ${content.content}`)]
  return asked === 1 ? [say('Let me look. '), call('read_file', { path: 'notes.txt' })] : [say('As I said: milk.')]
})

export default defineAgent('mini-claw-code', async turn => {
  await turn.run({ model: provider, tools: [readFile] })
})
