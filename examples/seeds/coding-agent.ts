/** The events of a coding agent that reads a file: text, a call as it is named, its arguments, its execution, and a turn that ends after its tools. */
import { call, defineTool, say, scriptedModel } from '@rivulet/agent'
import { defineAgent } from '@rivulet/worker'
import { z } from 'zod'

const readFile = defineTool({
  name: 'read_file',
  description: 'Reads a file',
  input: z.object({ path: z.string() }),
  run: ({ path }, { progress }) => {
    progress('opening')
    return `contents of ${path}`
  },
})

const model = scriptedModel(({ messages }) =>
  messages.at(-1)?.content.type === 'tool_response' ? [say('Done.')] : [say('I will read it.'), call('read_file', { path: 'src/main.ts' })],
)

export default defineAgent('coding-agent', async turn => {
  await turn.run({ model, tools: [readFile] })
})
