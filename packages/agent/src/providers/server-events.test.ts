import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createServerEventDecoder } from './server-events.ts'

describe('the grammar of server-sent events', () => {
  test.each([
    ['a space after the colon is optional', 'data:a\n\ndata: b\n\ndata:  c\n\n', ['a', 'b', ' c']],
    ['several data lines are one event', 'data: a\ndata: b\n\n', ['a\nb']],
    ['comments, other fields and unknown lines are ignored', ': hi\nid: 123\nretry: 5\nwhat: x\ndata: a\n\nid: 1\n\n', ['a']],
    ['line ends are CR, LF or CRLF', 'data: a\r\rdata: b\n\ndata: c\r\n\r\n', ['a', 'b', 'c']],
    ['also within one event', 'data: a\r\ndata: b\n\ndata: c\r\n\n', ['a\nb', 'c']],
    ['a byte order mark is no part of the first line', '\uFEFFdata: a\n\n', ['a']],
    ['the last event may lack its blank line', 'data: a\n\ndata: b', ['a', 'b']],
    ['and its line end', 'data: a\n\ndata: b\r', ['a', 'b']],
    ['blank lines alone are no event', '\n\n\r\n\r\n', []],
  ])('%s', (_, text, expected) => {
    expect(decode([text]).map(({ data }) => data)).toEqual(expected)
  })

  test('the name of an event is kept', () => {
    expect(decode(['event: error\ndata: {}\n\ndata: {}\n\n']).map(({ event }) => event)).toEqual(['error', undefined])
  })
})

test('any split of the bytes gives the same events', () => {
  const body = '\uFEFFdata: héllo 🌊\r\n\r\n: ping\revent: x\rdata: 日本語\rdata: 2\r\rdata: {"a":"\\ud83d"}\n\nid: 7\ndata:end'
  const whole = decode([body])
  expect(whole.map(({ data }) => data)).toEqual(['héllo 🌊', '日本語\n2', '{"a":"\\ud83d"}', 'end'])
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }), sizes => {
      expect(decode([body], sizes)).toEqual(whole)
    }),
  )
})

describe('limits', () => {
  test('a line that never ends is rejected', () => {
    const decoder = createServerEventDecoder(1000)
    const piece = new TextEncoder().encode('x'.repeat(400))
    decoder.feed(piece)
    decoder.feed(piece)
    expect(() => decoder.feed(piece)).toThrow('more than 1000 characters')
  })

  test('an event of endlessly many lines is rejected', () => {
    const decoder = createServerEventDecoder(1000)
    const lines = new TextEncoder().encode('data: 123456789\n'.repeat(60))
    decoder.feed(lines)
    expect(() => decoder.feed(lines)).toThrow('more than 1000 characters')
  })

  test('a complete event that is too long is rejected', () => {
    expect(() => createServerEventDecoder(1000).feed(new TextEncoder().encode(`data: ${'x'.repeat(2000)}\n\n`))).toThrow('more than 1000')
  })
})

function decode(texts: string[], sizes: number[] = [1_000_000]) {
  const decoder = createServerEventDecoder(10_000)
  const bytes = new TextEncoder().encode(texts.join(''))
  const events = []
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1
    events.push(...decoder.feed(bytes.subarray(at, at + size)))
    at += size
  }
  return [...events, ...decoder.end()]
}
