/** The sequences printed in the book and the documentation of agentkit, and the result of a consumer that follows their table. */
import {
  createTurnComposer,
  data,
  delta,
  done,
  type Event,
  full,
  type Message,
  media,
  reasoning,
  start,
  text,
  toolRequest,
  toolResponse,
  type Update,
} from '@rivulet/protocol'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { task, turnOf, updatesToEvents } from '../test/task-log.ts'
import { createDeltas, type Delta, itemsOf, type Part } from './agentkit.ts'

const fragment = (index: number, json: string) => delta(index, { type: 'tool_request', text: json })
const metadata = {}

describe('the deltas of the book', () => {
  test('a text', () => {
    const deltas = deltasOf(start(0, text()), ...['The ', 'answer', ' is ', '42.'].map(chunk => delta(0, chunk)), done(0))
    expect(deltas).toEqual([
      { type: 'BeginPart', part_id: 'p0', kind: 'Text' },
      { type: 'AppendText', part_id: 'p0', chunk: 'The ' },
      { type: 'AppendText', part_id: 'p0', chunk: 'answer' },
      { type: 'AppendText', part_id: 'p0', chunk: ' is ' },
      { type: 'AppendText', part_id: 'p0', chunk: '42.' },
      { type: 'CommitPart', part: { kind: 'Text', text: 'The answer is 42.', metadata } },
    ])
    const buffers = deltas.map((_, i) => consume(deltas.slice(0, i + 1)).buffers.get('p0'))
    expect(buffers).toEqual(['', 'The ', 'The answer', 'The answer is ', 'The answer is 42.', undefined])
  })

  test('a text and a call', () => {
    const deltas = deltasOf(
      ...[delta(0, "I'll read that file."), done(0)],
      ...[start(1, toolRequest('call-7', 'fs.read_file')), fragment(1, '{"path":'), fragment(1, ' "src/main.rs"}'), done(1)],
    )
    expect(deltas).toEqual([
      { type: 'BeginPart', part_id: 'p0', kind: 'Text' },
      { type: 'AppendText', part_id: 'p0', chunk: "I'll read that file." },
      { type: 'CommitPart', part: { kind: 'Text', text: "I'll read that file.", metadata } },
      { type: 'BeginPart', part_id: 'p1', kind: 'ToolCall' },
      { type: 'AppendText', part_id: 'p1', chunk: '{"path":' },
      { type: 'AppendText', part_id: 'p1', chunk: ' "src/main.rs"}' },
      { type: 'CommitPart', part: { kind: 'ToolCall', id: 'call-7', name: 'fs.read_file', input: { path: 'src/main.rs' }, metadata } },
    ])
  })

  test('reasoning before the answer', () => {
    const think = (chunk: string) => delta(0, { type: 'reasoning_summary', index: 0, text: chunk })
    const deltas = deltasOf(
      think('The user wants to know...'),
      think(' I should consider...'),
      done(0),
      delta(1, 'The answer is 42.'),
      done(1),
    )
    expect(deltas).toEqual([
      { type: 'BeginPart', part_id: 'p0', kind: 'Reasoning' },
      { type: 'AppendText', part_id: 'p0', chunk: 'The user wants to know...' },
      { type: 'AppendText', part_id: 'p0', chunk: ' I should consider...' },
      {
        type: 'CommitPart',
        part: { kind: 'Reasoning', summary: 'The user wants to know... I should consider...', content: null, metadata },
      },
      { type: 'BeginPart', part_id: 'p1', kind: 'Text' },
      { type: 'AppendText', part_id: 'p1', chunk: 'The answer is 42.' },
      { type: 'CommitPart', part: { kind: 'Text', text: 'The answer is 42.', metadata } },
    ])
  })

  test('the three deltas of its documentation, a part in progress', () => {
    const deltas = deltasOf(start(0, text()), delta(0, 'Hello'), delta(0, ', world!'))
    expect(deltas.map(({ type }) => type)).toEqual(['BeginPart', 'AppendText', 'AppendText'])
    expect(consume(deltas)).toEqual({ buffers: new Map([['p0', 'Hello, world!']]), parts: [] })
  })

  test('the other operations', () => {
    expect(
      deltasOf(
        ...[start(0, media('audio/wav')), delta(0, { type: 'media', bytes: 'AQID' }), done(0)],
        ...[start(1, data({ a: 1 })), delta(1, { type: 'data', value: { b: 2 } })],
        ...[delta(1, { type: 'metadata', metadata: { from: 'web' } }), done(1)],
      ),
    ).toEqual([
      { type: 'BeginPart', part_id: 'p0', kind: 'Media' },
      { type: 'AppendBytes', part_id: 'p0', chunk: 'AQID' },
      { type: 'CommitPart', part: { kind: 'Media', modality: 'Audio', mime_type: 'audio/wav', data: 'AQID', url: null, metadata } },
      { type: 'BeginPart', part_id: 'p1', kind: 'Structured' },
      { type: 'ReplaceStructured', part_id: 'p1', value: { a: 1 } },
      { type: 'ReplaceStructured', part_id: 'p1', value: { b: 2 } },
      { type: 'SetMetadata', part_id: 'p1', metadata: { from: 'web' } },
      { type: 'CommitPart', part: { kind: 'Structured', value: { b: 2 }, metadata: { from: 'web' } } },
    ])
  })

  test('there are six', () => {
    expectTypeOf<Delta['type']>().toEqualTypeOf<
      'BeginPart' | 'AppendText' | 'AppendBytes' | 'ReplaceStructured' | 'SetMetadata' | 'CommitPart'
    >()
  })
})

describe('a consumer', () => {
  const updates: Update[] = [
    ...[start(0, reasoning()), delta(0, { type: 'reasoning_content', index: 0, text: 'Hm.' }), done(0)],
    ...[start(1, toolRequest('a', 'f')), start(2, toolRequest('b', 'g')), fragment(2, '{"y"'), fragment(1, '{"x":1}')],
    ...[fragment(2, ':2}'), done(2, { stopReason: 'tool_use' }), done(1)],
    ...[start(3, toolResponse('a', 'f')), delta(3, { type: 'tool_response', text: '50 %' }), full(3, toolResponse('a', 'f', { z: 3 }))],
    ...[start(4, text('It ')), delta(4, 'is '), delta(4, 'done.'), done(4, { stopReason: 'stop' }), full(5, 'Whole.')],
  ]

  test('has at the end the stored parts, and no buffer', () => {
    const { buffers, parts } = consume(deltasOf(...updates))
    expect(buffers.size).toBe(0)
    const stored = itemsOf(messagesOf(updates)).flatMap(item => item.parts)
    expect(parts).toHaveLength(stored.length)
    expect(parts).toEqual(expect.arrayContaining(stored))
  })

  test('needs no commit to know a text, because the start content is appended too', () => {
    const withoutCommits = deltasOf(start(0, text('It ')), delta(0, 'is.')).filter(({ type }) => type !== 'CommitPart')
    expect(consume(withoutCommits).buffers.get('p0')).toBe('It is.')
  })

  test('never receives an incomplete call', () => {
    const half = turnOf({
      updates: [start(0, toolRequest('a', 'f')), fragment(0, '{"pa')],
      end: { status: 'completed', stopReason: 'stop' },
    })
    expect(typesOf(half)).toEqual(['BeginPart', 'AppendText'])
    const aborted = turnOf({ updates: [delta(0, 'half')], end: { status: 'canceled', stopReason: 'aborted' } })
    expect(typesOf(aborted)).toEqual(['BeginPart', 'AppendText', 'CommitPart'])
  })

  test('can send every delta through JSON', () => {
    const described = delta(7, { type: 'metadata', metadata: { a: 1 } })
    const others = [full(6, media('image/png', 'AAEC')), start(7, data()), delta(7, { type: 'data', value: { b: 2 } }), described]
    const deltas = deltasOf(...updates, ...others)
    const operations = ['BeginPart', 'AppendText', 'AppendBytes', 'ReplaceStructured', 'SetMetadata', 'CommitPart']
    expect(new Set(deltas.map(({ type }) => type))).toEqual(new Set(operations))
    expect(JSON.parse(JSON.stringify(deltas))).toEqual(deltas)
    expect(structuredClone(deltas)).toEqual(deltas)
  })
})

test('the transcript is items of whole parts', () => {
  const asked: Message = { ...messagesOf([delta(0, 'Why?'), done(0)])[0], author: 'user' } as Message
  const spoken = messagesOf([
    ...['The', ' answer', ' is', ' 42.'].map(chunk => delta(0, chunk)),
    done(0),
    delta(1, 'and'),
    delta(2, 'open'),
  ])
  expect(itemsOf([asked, ...spoken])).toEqual([
    { kind: 'User', parts: [{ kind: 'Text', text: 'Why?', metadata }] },
    { kind: 'Assistant', parts: [{ kind: 'Text', text: 'The answer is 42.', metadata }] },
  ])
  const used = messagesOf([full(0, toolRequest('a', 'f', { x: 1 })), full(1, toolResponse('a', 'f', 'no', true)), full(2, 'ok')])
  expect(itemsOf(used).map(({ kind }) => kind)).toEqual(['Assistant', 'Tool', 'Assistant'])
  expectTypeOf<Delta>().not.toExtend<Part>()
})

function deltasOf(...updates: Update[]): Delta[] {
  return updatesToEvents(...updates).flatMap(createDeltas())
}

function typesOf(events: Event[]): Delta['type'][] {
  return events.flatMap(createDeltas()).map(({ type }) => type)
}

function messagesOf(updates: Update[]): Message[] {
  const composer = createTurnComposer({ task, turn: 1, attempt: 1, firstIndex: 0 })
  for (const update of updates) composer.compose(update)
  return composer.messages()
}

/** A consumer that follows the book's table of the delta protocol. */
function consume(deltas: Delta[]): { buffers: Map<string, unknown>; parts: Part[] } {
  const buffers = new Map<string, unknown>()
  const parts: Part[] = []
  const open: string[] = []
  for (const each of deltas) {
    if (each.type === 'CommitPart') {
      parts.push(each.part)
      const id = open.find(candidate => fits(buffers.get(candidate), each.part)) ?? open[0] ?? ''
      open.splice(open.indexOf(id), 1)
      buffers.delete(id)
      continue
    }
    const buffer = buffers.get(each.part_id)
    if (each.type === 'BeginPart') open.push(each.part_id)
    if (each.type === 'BeginPart') buffers.set(each.part_id, '')
    if (each.type === 'AppendText' || each.type === 'AppendBytes') buffers.set(each.part_id, `${buffer}${each.chunk}`)
    if (each.type === 'ReplaceStructured') buffers.set(each.part_id, each.value)
  }
  return { buffers, parts }
}

/** A commit carries no id, so a consumer with several open parts finds the part by its content. */
function fits(buffer: unknown, part: Part): boolean {
  return part.kind === 'ToolCall' && typeof buffer === 'string' && buffer === JSON.stringify(part.input)
}
