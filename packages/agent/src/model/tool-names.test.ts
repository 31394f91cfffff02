import { toolRequest, toolResponse } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { callChunk, chunk, namedSse, sse, withProvider } from '../../test/provider-server.ts'
import { runAgent } from '../loop/run-agent.ts'
import { anthropicModel } from '../providers/anthropic/anthropic-model.ts'
import { openaiModel } from '../providers/openai/openai-model.ts'
import { defineTool } from '../tools/tool.ts'
import { user } from './conversation.ts'
import { withWireNames } from './tool-names.ts'

const read = defineTool({ name: 'fs.read_file', description: '', input: z.object({}), run: () => 'contents' })
const plain = { name: 'fs_read_file', description: '', parameters: { type: 'object' } }
const openaiCall = sse(
  callChunk({ index: 0, id: 'c1', function: { name: 'fs_read_file', arguments: '{}' } }),
  chunk({}, 'tool_calls'),
  '[DONE]',
)
const anthropicCall = namedSse(
  { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'c1', name: 'fs_read_file', input: {} } },
  { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '{}' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
  { type: 'message_stop' },
)

describe('a tool with dots in its name', () => {
  test.each([
    ['OpenAI', openaiModel, openaiCall, sse(chunk({ content: 'ok' }, 'stop'), '[DONE]')],
    [
      'Anthropic',
      anthropicModel,
      anthropicCall,
      namedSse(
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'ok' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
        { type: 'message_stop' },
      ),
    ],
  ])('is requested from %s without dots, and called by its own name', async (_, create, asks, ends) => {
    await withProvider([{ chunks: [asks] }, { chunks: [ends] }], async server => {
      const model = create({ baseUrl: server.url, model: 'm' })
      const { messages } = await runAgent({ model, tools: [read], messages: [user('go')] }).result
      expect(messages.slice(0, 2).map(({ content }) => content)).toEqual([
        toolRequest('c1', 'fs.read_file', {}),
        toolResponse('c1', 'fs.read_file', 'contents'),
      ])
      for (const { body } of server.requests) expect(JSON.stringify(body)).not.toContain('fs.read_file')
      expect(JSON.stringify(server.requests[1]?.body)).toContain('fs_read_file')
    })
  })

  test('does not take the name of another tool', () => {
    const { request, nameOf } = withWireNames({ messages: [], tools: [plain, read], toolChoice: { name: 'fs.read_file' } })
    expect(request.tools?.map(({ name }) => name)).toEqual(['fs_read_file', 'fs_read_file_'])
    expect(request.toolChoice).toEqual({ name: 'fs_read_file_' })
    expect(['fs_read_file', 'fs_read_file_'].map(nameOf)).toEqual(['fs_read_file', 'fs.read_file'])
  })
})
