/** A coding agent: reads files by itself, and asks a person before it writes, edits or runs a command. Each task has a folder of its own. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { call, say, scriptedModel } from '@rivulet/agent'
import { defineAgent } from '@rivulet/worker'
import { createCodingTools } from '@rivulet/worker/coding-tools'

// Plays a script, offline. With a key: openaiModel({ model, apiKey }) of @rivulet/agent.
const model = scriptedModel(({ messages }) => {
  const results = messages.filter(({ content }) => content.type === 'tool_response').length
  const script = [
    [say('I write a test first. '), call('write', { path: 'sum.sh', content: 'echo $((1 + 1))\n' })],
    [call('edit', { path: 'sum.sh', old: '1 + 1', new: '40 + 2' })],
    [call('bash', { command: 'sh sum.sh' })],
    [call('read', { path: 'sum.sh' })],
  ]
  return script[results] ?? [say('It prints what it should.')]
})

const system = 'You are a careful programmer. Read before you edit, and run what you wrote.'

export default defineAgent(
  'coder',
  async turn => {
    const tools = await createCodingTools(join(tmpdir(), 'rivulet-coder', turn.task.id))
    await turn.run({ model, system, tools: Object.values(tools), approve: ({ tool }) => (tool === 'read' ? 'allow' : 'ask') })
  },
  { description: 'Reads, writes, edits and runs code in a folder, and asks first' },
)
