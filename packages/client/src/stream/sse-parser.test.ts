import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createFrameParser, type Frame } from './sse-parser.ts'

const line = fc.oneof(
  fc.constantFrom('', '', 'data', 'data:', 'data: a', 'data:  b', 'data: c: d', ': hb', ':', 'event: end', 'event', 'event:', 'later: 1'),
  fc.constantFrom('id: 1-1', 'id:1-2', 'id', 'id: a\0', 'retry: 1500', 'retry:7', 'retry: 1.5', 'retry', ' data: e', 'Data: f'),
  fc.string({ unit: 'binary', maxLength: 5 }).map(text => `data: ${text.replace(/[\r\n]/g, '')}`),
)
const lines = fc.array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 30 })

describe('an event stream', () => {
  test('has the frames that another parser of the standard finds, wherever it is cut', () => {
    fc.assert(
      fc.property(lines, fc.array(fc.nat({ max: 7 }), { maxLength: 200 }), (given, sizes) => {
        const text = `${given.flat().join('')}\n\n`
        const frames: Frame[] = []
        const retries: number[] = []
        const parser = createFrameParser(ms => retries.push(ms))
        let rest = text
        for (const size of sizes) {
          frames.push(...parser.parse(rest.slice(0, size)))
          rest = rest.slice(size)
        }
        frames.push(...parser.parse(rest))
        const expected: { frames: unknown[]; retries: number[] } = { frames: [], retries: [] }
        createParser({ onEvent: frame => expected.frames.push(frame), onRetry: ms => expected.retries.push(ms) }).feed(text)
        expect({ frames, retries }).toEqual(expected)
        expect(parser.length).toBe(0)
      }),
    )
  })

  test('counts what it holds of a frame that is not complete', () => {
    const parser = createFrameParser(() => {})
    parser.parse('data: 1\n\nid: 1-1\nda')
    expect(parser.length).toBe(9)
    parser.parse('ta: 234')
    expect(parser.length).toBe(16)
  })

  test('a long line costs its length once, however small its pieces are', () => {
    const parser = createFrameParser(() => {})
    const piece = 'a'.repeat(1_024)
    parser.parse('data: ')
    const before = process.cpuUsage()
    for (let count = 0; count < 16_384; count += 1) parser.parse(piece)
    expect(parser.parse('\n\n')[0]?.data.length).toBe(16 * 1_024 * 1_024)
    // Of the processor, because the clock also counts what other processes do.
    expect(process.cpuUsage(before).user).toBeLessThan(5_000_000)
  })
})
