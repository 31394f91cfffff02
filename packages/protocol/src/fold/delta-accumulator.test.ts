import { describe, expect, test } from 'vitest'
import { stamp } from '../../test/logs.ts'
import { everyContent, everyDelta } from '../../test/samples.ts'
import { type Content, data, media, reasoning, text, toolRequest, toolResponse } from '../entities/content.ts'
import type { Delta } from '../events/delta.ts'
import type { EventOf } from '../events/event.ts'
import { DeltaAccumulator } from './delta-accumulator.ts'

function started(content: Content): DeltaAccumulator {
  return DeltaAccumulator.started({ type: 'message.started', ...stamp, index: 0, author: 'agent', content })
}

function finished(accumulator: DeltaAccumulator, how: Partial<EventOf<'message.finished'>> = {}) {
  return accumulator.finish({ type: 'message.finished', ...stamp, at: stamp.at + 1000, index: 0, status: 'complete', ...how }).message
}

function grown(content: Content, ...deltas: Delta[]): DeltaAccumulator {
  return deltas.reduce((accumulator, delta) => accumulator.append(delta), started(content))
}

describe('which delta extends which content', () => {
  const fitting: Record<Content['type'], Delta['type'][]> = {
    text: ['text', 'metadata'],
    reasoning: ['reasoning_summary', 'reasoning_content', 'metadata'],
    data: ['data_json', 'data', 'metadata'],
    tool_request: ['tool_request', 'metadata'],
    tool_response: ['tool_response', 'data', 'metadata'],
    media: ['media', 'metadata'],
  }

  test.each(everyContent.filter(content => !('url' in content)))(
    'a message of type $type accepts its own deltas and rejects the others without a change',
    content => {
      const accumulator = started(content)
      for (const delta of everyDelta) {
        if (fitting[content.type].includes(delta.type)) {
          expect(accumulator.append(delta).message).not.toEqual(accumulator.message)
        } else {
          const mismatch = expect.objectContaining({ code: 'delta_type_mismatch' })
          expect(() => accumulator.append(delta)).toThrow(mismatch)
          expect(() => accumulator.offsetOf(delta)).toThrow(mismatch)
        }
        expect(accumulator.message.content).toEqual(content)
      }
    },
  )

  test('media with a url rejects bytes', () => {
    const link = started({ type: 'media', mimeType: 'image/png', url: 'https://example.org/a.png' })
    expect(() => link.append({ type: 'media', bytes: 'AQ==' })).toThrow(expect.objectContaining({ code: 'delta_type_mismatch' }))
  })

  test('a tool response accepts text after null and text, and rejects it after another value', () => {
    const words: Delta = { type: 'tool_response', text: '%' }
    expect(grown(toolResponse('1', 'f', null), words).content).toMatchObject({ content: '%' })
    expect(grown(toolResponse('1', 'f', '50 '), words).content).toMatchObject({ content: '50 %' })
    expect(() => grown(toolResponse('1', 'f', { done: 50 }), words)).toThrow(expect.objectContaining({ code: 'delta_type_mismatch' }))
  })
})

describe('offsets', () => {
  test('count UTF-16 units, for reasoning in each part', () => {
    expect(started(text('a😀')).offsetOf({ type: 'text', text: '' })).toBe(3)
    const thought = grown(reasoning(['ab']), { type: 'reasoning_summary', index: 2, text: 'c' })
    expect([0, 1, 2, 3].map(index => thought.offsetOf({ type: 'reasoning_summary', index, text: '' }))).toEqual([2, 0, 1, 0])
    expect(thought.offsetOf({ type: 'reasoning_content', index: 0, text: '' })).toBe(0)
  })

  test('count bytes for media, and for JSON the fragments without the base', () => {
    expect(started(media('image/png', 'AQI=')).offsetOf({ type: 'media', bytes: '' })).toBe(2)
    const request = started(toolRequest('1', 'f', { a: 'long base' }))
    expect(request.offsetOf({ type: 'tool_request', text: '' })).toBe(0)
    expect(request.append({ type: 'tool_request', text: '{"' }).offsetOf({ type: 'tool_request', text: '' })).toBe(2)
  })

  test('are 0 for deltas that replace', () => {
    expect(started(data([1])).offsetOf({ type: 'data', value: 1 })).toBe(0)
    expect(started(text('abc')).offsetOf({ type: 'metadata', metadata: {} })).toBe(0)
  })
})

describe('JSON text', () => {
  test('is in raw while the message is open; the close parses it into the value and removes raw', () => {
    const open = grown(toolRequest('1', 'f', { base: true }), { type: 'tool_request', text: '{"a"' }, { type: 'tool_request', text: ':1}' })
    expect(open.content).toEqual({ ...toolRequest('1', 'f', { base: true }), raw: '{"a":1}' })
    expect(finished(open).content).toEqual(toolRequest('1', 'f', { a: 1 }))
  })

  test('without a fragment keeps the base', () => {
    expect(finished(started(toolRequest('1', 'f', { base: true }))).content).toEqual(toolRequest('1', 'f', { base: true }))
  })

  test('that is blank means empty arguments, but invalid data', () => {
    expect(finished(grown(toolRequest('1', 'f', 1), { type: 'tool_request', text: ' \n' })).content).toEqual(toolRequest('1', 'f', {}))
    expect(finished(grown(data(), { type: 'data_json', text: ' ' })).status).toBe('failed')
  })

  test.each(['{"pa', '{"a":1}}', '{}{"a":1}', "{'a':1}", '[1,]', `${'['.repeat(65)}${']'.repeat(65)}`])(
    'that does not parse, %s, stays in raw and turns complete into failed',
    raw => {
      const broken = finished(grown(toolRequest('1', 'f'), { type: 'tool_request', text: raw }))
      expect(broken).toMatchObject({ status: 'failed', error: { code: 'invalid_json' }, content: { arguments: {}, raw } })
    },
  )

  test('that does not parse does not change an aborted status or the error of a failed one', () => {
    const open = grown(data(), { type: 'data_json', text: '{"a' })
    expect(finished(open, { status: 'aborted' })).toMatchObject({ status: 'aborted', content: { raw: '{"a' } })
    expect(finished(open, { status: 'aborted' }).error).toBeUndefined()
    const error = { code: 'agent_error', message: 'thrown' }
    expect(finished(open, { status: 'failed', error }).error).toEqual(error)
  })

  test('with escaped NUL and lone surrogates parses to storable text', () => {
    const open = grown(data(), { type: 'data_json', text: '{"a\\u0000":"\\ud83d"}' })
    expect(finished(open).content).toEqual(data({ 'a\ufffd': '\ufffd' }))
  })

  test('a million levels deep fails the message, not the process', () => {
    const deep = '['.repeat(1_000_000) + ']'.repeat(1_000_000)
    expect(finished(grown(data(), { type: 'data_json', text: deep })).status).toBe('failed')
  })

  test('is discarded by a delta with a value, and may begin again after it', () => {
    const replaced = grown(data({ a: 1 }), { type: 'data_json', text: '{"b' }, { type: 'data', value: { c: 3 } })
    expect(replaced.content).toEqual(data({ c: 3 }))
    expect(finished(replaced.append({ type: 'data_json', text: '4' })).content).toEqual(data(4))
  })
})

describe('a message', () => {
  test('keeps the fields that deltas do not extend: format, names, media type', () => {
    expect(grown(text('a', 'markdown'), { type: 'text', text: 'b' }).content).toEqual(text('ab', 'markdown'))
    expect(grown(media('audio/wav', 'AQ=='), { type: 'media', bytes: 'Ag==' }).content).toEqual(media('audio/wav', 'AQI='))
    expect(grown(toolResponse('7', 'f', null, true), { type: 'tool_response', text: 'x' }).content).toEqual(
      toolResponse('7', 'f', 'x', true),
    )
  })

  test('fills skipped parts of reasoning with empty ones', () => {
    expect(grown(reasoning(), { type: 'reasoning_content', index: 2, text: 'c' }).content).toEqual(reasoning([], ['', '', 'c']))
  })

  test('replaces its metadata as a whole, before, between and after other deltas', () => {
    const grownMessage = grown(
      text('a'),
      { type: 'metadata', metadata: { a: 1 } },
      { type: 'text', text: 'b' },
      { type: 'metadata', metadata: { b: 2 } },
      { type: 'text', text: 'c' },
    ).message
    expect(grownMessage).toMatchObject({ content: text('abc'), metadata: { b: 2 } })
    expect(grownMessage.metadata).not.toHaveProperty('a')
  })

  test('has its start and end time, stop reason and usage', () => {
    const closed = finished(started(text('a')), { stopReason: 'length', usage: { outputTokens: 3 } })
    expect(closed).toMatchObject({ status: 'complete', stopReason: 'length', usage: { outputTokens: 3 } })
    expect(closed.createdAt).toBe('2023-11-14T22:13:20.000Z')
    expect(closed.finishedAt).toBe('2023-11-14T22:13:21.000Z')
  })

  test('is built once and is then the same object', () => {
    const accumulator = grown(text('a'), { type: 'text', text: 'b' })
    expect(accumulator.message).toBe(accumulator.message)
  })

  test('never changes an earlier accumulator', () => {
    const first = started(media('image/png', 'AQ=='))
    const second = first.append({ type: 'media', bytes: 'Ag==' })
    const other = first.append({ type: 'media', bytes: 'Aw==' })
    expect([first, second, other].map(({ content }) => content)).toEqual([
      media('image/png', 'AQ=='),
      media('image/png', 'AQI='),
      media('image/png', 'AQM='),
    ])
  })
})
