/** The loop's updates, converted by the view for coding-agent interfaces. */
import { type AgentEvent, createRunEvents } from '@rivulet/views/coding-agent'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { callChunk, chunk, sse, withProvider } from '../../test/provider-server.ts'

import { user } from '../model/conversation.ts'
import { openaiModel } from '../providers/openai/openai-model.ts'
import { call, callText, say, wait } from '../scripted/script.ts'
import { scriptedModel } from '../scripted/scripted-model.ts'
import { defineTool } from '../tools/tool.ts'
import { type RunStream, runAgent } from './run-agent.ts'

const read = defineTool({
  name: 'read',
  description: 'Reads a file',
  input: z.object({ path: z.string() }),
  run: ({ path }, { progress }) => {
    if (path === 'missing') throw new Error('no such file')
    if (path === 'long') progress('half ')
    return `contents of ${path}`
  },
})

describe('a run through the coding-agent view', () => {
  test('that reads a file gives exactly the documented events', async () => {
    const first = sse(
      chunk({ content: 'Let me check the configuration file first.' }),
      callChunk({ index: 0, id: 'call-1', function: { name: 'read', arguments: '{"path":' } }),
      callChunk({ index: 0, function: { arguments: '"src/config.ts"}' } }),
      chunk({}, 'tool_calls'),
      '[DONE]',
    )
    const second = sse(chunk({ content: 'Done.' }), chunk({}, 'stop'), '[DONE]')
    await withProvider([{ chunks: [first] }, { chunks: [second] }], async ({ url }) => {
      const model = openaiModel({ baseUrl: url, model: 'm' })
      const input = { path: 'src/config.ts' }
      expect(await eventsOf(runAgent({ model, tools: [read], messages: [user('read')] }))).toEqual([
        { type: 'assistant_text_delta', text: 'Let me check the configuration file first.' },
        { type: 'tool_call_started', id: 'call-1', name: 'read' },
        { type: 'tool_call_arguments_delta', id: 'call-1', delta: '{"path":' },
        { type: 'tool_call_arguments_delta', id: 'call-1', delta: '"src/config.ts"}' },
        { type: 'tool_call_ready', id: 'call-1', name: 'read', input },
        { type: 'tool_execution_started', id: 'call-1', name: 'read' },
        { type: 'tool_execution_finished', id: 'call-1', isError: false },
        {
          type: 'turn_finished',
          message: {
            text: 'Let me check the configuration file first.',
            toolCalls: [{ id: 'call-1', name: 'read', input }],
            stopReason: 'toolUse',
          },
        },
        { type: 'assistant_text_delta', text: 'Done.' },
        { type: 'turn_finished', message: { text: 'Done.', toolCalls: [], stopReason: 'stop' } },
      ])
    })
  })

  test('keeps the order of events of each call, also among parallel calls', async () => {
    const model = scriptedModel([
      [
        call('read', { path: 'long' }, 'a'),
        call('read', { path: 'missing' }, 'b'),
        call('nothing', {}, 'c'),
        callText('read', '{"pa', 'd'),
      ],
      'ok',
    ])
    const events = await eventsOf(runAgent({ model, tools: [read], messages: [user('go')] }))
    const kindsOf = (id: string) =>
      events.flatMap(event => ('id' in event && event.id === id ? [event.type] : [])).filter((type, at, all) => type !== all[at - 1])
    const asked = ['tool_call_started', 'tool_call_arguments_delta']
    const finished = ['tool_execution_started', 'tool_execution_finished']
    expect(kindsOf('a')).toEqual([
      ...asked,
      'tool_call_ready',
      'tool_execution_started',
      'tool_execution_update',
      'tool_execution_finished',
    ])
    for (const id of ['b', 'c']) expect(kindsOf(id)).toEqual([...asked, 'tool_call_ready', ...finished])
    expect(kindsOf('d')).toEqual([...asked, ...finished])
    expect(events.flatMap(event => (event.type === 'tool_execution_finished' ? [[event.id, event.isError]] : [])).sort()).toEqual([
      ['a', false],
      ['b', true],
      ['c', true],
      ['d', true],
    ])
    const turns = events.flatMap((event, at) => (event.type === 'turn_finished' ? [{ at, ...event.message }] : []))
    expect(turns.map(({ stopReason }) => stopReason)).toEqual(['toolUse', 'stop'])
    expect(turns[0]?.at).toBeGreaterThan(events.findLastIndex(({ type }) => type === 'tool_execution_finished'))
    for (const event of events) {
      if (event.type !== 'tool_call_ready') continue
      const text = events.map(other => (other.type === 'tool_call_arguments_delta' && other.id === event.id ? other.delta : '')).join('')
      expect(JSON.parse(text)).toEqual(event.input)
    }
  })

  test('that is aborted emits aborted and then a message with that stop reason', async () => {
    const abort = new AbortController()
    const run = runAgent({ model: scriptedModel([[say('Half'), wait(60_000)]]), messages: [user('go')], signal: abort.signal })
    const view = createRunEvents()
    const events: AgentEvent[] = []
    for await (const update of run) {
      events.push(...view(update))
      if (events.map(event => (event.type === 'assistant_text_delta' ? event.text : '')).join('') === 'Half') abort.abort()
    }
    expect(events.slice(-2)).toEqual([
      { type: 'aborted' },
      { type: 'turn_finished', message: { text: 'Half', toolCalls: [], stopReason: 'aborted' } },
    ])
  })
})

async function eventsOf(run: RunStream): Promise<AgentEvent[]> {
  const view = createRunEvents()
  const events: AgentEvent[] = []
  for await (const update of run) events.push(...view(update))
  return events
}
