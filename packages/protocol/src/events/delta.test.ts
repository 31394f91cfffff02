import { describe, expect, test } from 'vitest'
import { everyContent, everyDelta } from '../../test/samples.ts'
import { contentSchema, emptyContent } from '../entities/content.ts'
import { DeltaAccumulator } from '../fold/delta-accumulator.ts'
import { splitDelta, utf8Length } from '../fold/delta-split.ts'
import { channelOf, contentTypeOf, type Delta, deltaSchema, isTextDelta, mergeDeltas } from './delta.ts'

describe('on the wire', () => {
  test.each(everyDelta)('a delta of $type survives JSON and cloning, and compares by structure', delta => {
    expect(deltaSchema.parse(JSON.parse(JSON.stringify(delta)))).toEqual(delta)
    expect(deltaSchema.parse(structuredClone(delta))).toEqual(delta)
  })

  test.each(everyContent)('a content of $type survives JSON and cloning', content => {
    expect(contentSchema.parse(JSON.parse(JSON.stringify(content)))).toEqual(content)
    expect(contentSchema.parse(structuredClone(content))).toEqual(content)
  })

  test('readers ignore fields that they do not know', () => {
    expect(deltaSchema.parse({ type: 'text', text: 'a', lang: 'en' })).toEqual({ type: 'text', text: 'a' })
    expect(contentSchema.parse({ type: 'text', text: 'a', lang: 'en' })).toEqual({ type: 'text', text: 'a', format: 'plain' })
  })

  test.each([
    { type: 'poem', text: 'a' },
    { type: 'text' },
    { type: 'text', text: 1 },
    { type: 'reasoning_summary', index: 256, text: '' },
    { type: 'reasoning_summary', index: -1, text: '' },
    { type: 'reasoning_content', index: 0.5, text: '' },
    { type: 'media', bytes: 'not base64' },
    { type: 'metadata', metadata: [] },
    { type: 'data' },
  ])('%j is not a delta', value => {
    expect(deltaSchema.safeParse(value).success).toBe(false)
  })
})

test('every delta can extend the content type that it starts', () => {
  for (const delta of everyDelta) {
    const content = emptyContent(contentTypeOf(delta.type))
    expect(DeltaAccumulator.of({ ...message, content }).offsetOf(delta)).toBe(0)
  }
})

describe('merging', () => {
  const text = (value: string): Delta => ({ type: 'text', text: value })
  const summary = (index: number, value: string): Delta => ({ type: 'reasoning_summary', index, text: value })

  test('texts of one channel are joined, bytes are joined as bytes', () => {
    expect(mergeDeltas(text('a'), text('b'))).toEqual(text('ab'))
    expect(mergeDeltas(summary(1, 'a'), summary(1, 'b'))).toEqual(summary(1, 'ab'))
    expect(mergeDeltas({ type: 'media', bytes: 'AQ==' }, { type: 'media', bytes: 'AgM=' })).toEqual({ type: 'media', bytes: 'AQID' })
  })

  test.each([
    [text('a'), summary(0, 'b')],
    [summary(0, 'a'), summary(1, 'b')],
    [summary(0, 'a'), { type: 'reasoning_content', index: 0, text: 'b' }],
    [
      { type: 'data', value: 1 },
      { type: 'data', value: 2 },
    ],
    [
      { type: 'metadata', metadata: {} },
      { type: 'metadata', metadata: {} },
    ],
    [
      { type: 'data_json', text: '1' },
      { type: 'data', value: 1 },
    ],
  ] as [Delta, Delta][])('%j and %j stay two', (first, second) => {
    expect(mergeDeltas(first, second)).toBeNull()
  })

  test('a channel is a type, and for reasoning a part', () => {
    expect(new Set(everyDelta.map(channelOf)).size).toBe(everyDelta.length)
    expect(channelOf(summary(3, ''))).not.toBe(channelOf(summary(2, '')))
  })
})

describe('splitting', () => {
  test('pieces stay within the limit, cut no character and join to the whole', () => {
    const whole = 'aé漢😀'.repeat(20)
    for (let limit = 4; limit < 40; limit += 1) {
      const pieces = splitDelta({ type: 'text', text: whole }, limit)
      const texts = pieces.map(piece => (isTextDelta(piece) ? piece.text : ''))
      expect(texts.join('')).toBe(whole)
      expect(texts.every(text => text.isWellFormed() && utf8Length(text) <= limit)).toBe(true)
      // Each piece is as full as possible: the next character would not fit.
      expect(texts.slice(0, -1).every(text => utf8Length(text) > limit - 4)).toBe(true)
    }
  })

  test('bytes are cut between groups', () => {
    const pieces = splitDelta({ type: 'media', bytes: btoa('x'.repeat(1000)) }, 100)
    const texts = pieces.map(piece => (piece.type === 'media' ? atob(piece.bytes) : ''))
    expect(texts.join('')).toBe('x'.repeat(1000))
    expect(Math.max(...texts.map(text => text.length))).toBe(99)
  })

  test('values are not cut', () => {
    const delta: Delta = { type: 'data', value: 'x'.repeat(1000) }
    expect(splitDelta(delta, 10)).toEqual([delta])
  })

  test('the length in UTF-8 is the encoder’s', () => {
    for (const text of ['', 'a\x7f', 'é\x80\u07ff', '漢\u0800\uffff', '😀', 'aé漢😀']) {
      expect(utf8Length(text)).toBe(new TextEncoder().encode(text).length)
    }
  })
})

const message = {
  task: '0198c0de-0000-7000-8000-000000000001',
  index: 0,
  turn: 1,
  attempt: 1,
  author: 'agent' as const,
  metadata: {},
  status: 'streaming' as const,
  createdAt: '2024-01-01T00:00:00.000Z',
}
