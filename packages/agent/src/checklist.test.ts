/** Checklist items about providers and the loop that no other test covers. */
import { type Update, updateSchema } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { collect, lines } from '../test/collect.ts'
import { callChunk, chunk, namedSse, sse, withProvider } from '../test/provider-server.ts'
import { runAgent } from './loop/run-agent.ts'
import { user } from './model/conversation.ts'
import { createEventStream } from './model/event-stream.ts'
import type { Model } from './model/model.ts'
import { anthropicModel } from './providers/anthropic/anthropic-model.ts'
import { openaiModel } from './providers/openai/openai-model.ts'
import { call } from './scripted/script.ts'
import { scriptedModel } from './scripted/scripted-model.ts'
import { defineTool } from './tools/tool.ts'

const messages = [user('go')]
const read = defineTool({ name: 'read', description: '', input: z.object({ path: z.string() }), run: ({ path }) => `contents of ${path}` })

describe('providers', () => {
  test('give the same updates for the same response, with nothing of their wire format in them', async () => {
    const openai = [
      sse(chunk({ content: 'Let me ' }), chunk({ content: 'look.' })) +
        sse(callChunk({ index: 0, id: 'c1', function: { name: 'read', arguments: '{"path":"f"}' } }), chunk({}, 'tool_calls'), '[DONE]'),
      sse(chunk({ content: 'Done.' }), chunk({}, 'stop'), '[DONE]'),
    ]
    const block = (index: number, content_block: object, ...deltas: object[]) =>
      namedSse(
        { type: 'content_block_start', index, content_block },
        ...deltas.map(delta => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      )
    const end = (stop_reason: string) => namedSse({ type: 'message_delta', delta: { stop_reason } }, { type: 'message_stop' })
    const words = (...texts: string[]) => texts.map(text => ({ type: 'text_delta', text }))
    const anthropic = [
      block(0, { type: 'text', text: '' }, ...words('Let me ', 'look.')) +
        block(1, { type: 'tool_use', id: 'c1', name: 'read', input: {} }, { type: 'input_json_delta', partial_json: '{"path":"f"}' }) +
        end('tool_use'),
      block(0, { type: 'text', text: '' }, ...words('Done.')) + end('end_turn'),
    ]
    const runs = await Promise.all(
      [
        { bodies: openai, create: openaiModel },
        { bodies: anthropic, create: anthropicModel },
      ].map(({ bodies, create }) =>
        withProvider(
          bodies.map(body => ({ chunks: [body] })),
          ({ url }) => collect(runAgent({ model: create({ baseUrl: url, model: 'm' }), tools: [read], messages })),
        ),
      ),
    )
    const [first, second] = runs.map(({ updates }) => updates)
    expect(first?.length).toBeGreaterThan(5)
    expect(second).toEqual(first)
    for (const update of first ?? []) expect(updateSchema.parse(update)).toEqual(update)
  })

  test('emit the first chunk while more is still to arrive, and return the whole text at the end', async () => {
    let resolve = () => {}
    const firstDelta = new Promise<void>(done => {
      resolve = done
    })
    const chunks = [sse(chunk({ content: 'First' })), firstDelta, sse(chunk({ content: ', then' }), chunk({}, 'stop'), '[DONE]')]
    await withProvider([{ chunks }], async ({ url }) => {
      const stream = openaiModel({ baseUrl: url, model: 'm' }).stream({ messages })
      for await (const update of stream) if (update.type === 'delta') resolve()
      expect(await stream.result).toMatchObject({ text: 'First, then', stopReason: 'stop' })
    })
  })

  test('send the given trace header in every request of a run', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const asks = sse(callChunk({ index: 0, id: 'c1', function: { name: 'read', arguments: '{"path":"f"}' } }), chunk({}, 'tool_calls'))
    await withProvider([{ chunks: [asks] }, { chunks: [sse(chunk({ content: 'ok' }), chunk({}, 'stop'))] }], async server => {
      const model = openaiModel({ baseUrl: server.url, model: 'm', headers: { traceparent } })
      await runAgent({ model, tools: [read], messages }).result
      expect(server.requests.map(({ headers }) => headers.traceparent)).toEqual([traceparent, traceparent])
    })
  })
})

describe('the loop', () => {
  test('folds each update before it sends it, and does not send an update that cannot be folded', async () => {
    const flood = defineTool({ name: 'flood', description: '', input: z.object({}), run: () => 'x'.repeat(17 * 1024 * 1024) })
    const seen: Update[] = []
    const { updates, error } = await collect(
      runAgent({
        model: scriptedModel([[call('flood', {})], 'never']),
        tools: [flood],
        messages,
        observers: [update => seen.push(update)],
      }),
    )
    expect(error).toBeDefined()
    expect(updates.some(update => update.type === 'full')).toBe(false)
    expect(seen).toEqual(updates)
  })

  test('reads each response from its own stream, and ignores what an earlier one emits late', async () => {
    const late: (() => void)[] = []
    const inner = scriptedModel([[call('read', { path: 'f' })], 'Done.'])
    const model: Model = {
      name: 'late',
      stream: (request, options) =>
        createEventStream(async ({ emit }) => {
          for (const emitLate of late) emitLate()
          const stream = inner.stream(request, options)
          for await (const update of stream) emit(update)
          late.push(() => emit({ type: 'delta', index: 0, delta: { type: 'text', text: 'too late' } }))
          return stream.result
        }),
    }
    const { updates } = await collect(runAgent({ model, tools: [read], messages }))
    expect(late).toHaveLength(2)
    expect(lines(updates).join('\n')).not.toContain('too late')
    expect(lines(updates).at(-1)).toBe('2 done stop')
  })
})
