/** One of each kind. */
import type { ContentType } from '../src/entities/content.ts'
import { type Content, type Delta, data, media, reasoning, text, toolRequest, toolResponse, type Wait } from '../src/index.ts'

export const everyDelta: Delta[] = [
  { type: 'text', text: 'é😀' },
  { type: 'reasoning_summary', index: 1, text: 'so' },
  { type: 'reasoning_content', index: 0, text: 'hm' },
  { type: 'data_json', text: '{"a"' },
  { type: 'data', value: { a: [1, null] } },
  { type: 'tool_request', text: '{"q":' },
  { type: 'tool_response', text: '50 %' },
  { type: 'media', bytes: 'AQID' },
  { type: 'metadata', metadata: { source: 'web' } },
]

const contentsByType: Record<ContentType, Content[]> = {
  text: [text('a', 'markdown')],
  reasoning: [reasoning(['a'], ['', 'b'])],
  data: [data({ b: [2, null] }), { ...data(null), raw: '{"a' }],
  tool_request: [toolRequest('call-7', 'read_file', { path: 'src/main.rs' }), { ...toolRequest('call-7', 'read_file'), raw: '{"pa' }],
  tool_response: [toolResponse('call-7', 'read_file', 'fn main() {}', true)],
  media: [media('audio/wav', 'AQID'), { type: 'media', mimeType: 'image/png', url: 'https://example.org/a.png' }],
}
export const everyContent = Object.values(contentsByType).flat()

export const sampleWait: Wait = {
  ...{ id: '0192f0c1-2345-7abc-8def-0123456789ab', task: '0198c0de-0000-7000-8000-000000000001', turn: 1, agent: 'clerk', name: 'refund' },
  ...{ kind: 'approval', title: 'May I?', actions: ['accept', 'decline'], metadata: {}, status: 'open' },
  ...{ createdAt: '2026-01-01T00:00:00.000Z', expiresAt: '2026-01-08T00:00:00.000Z' },
}
