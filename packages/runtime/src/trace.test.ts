/** The headers that are accepted as a trace, and the trace without a span collector. */
import { describe, expect, test } from 'vitest'
import { newTraceparent, parseTraceparent, plainTracer, traceIdOf } from './trace.ts'

const trace = '0af7651916cd43dd8448eb211c80319c'
const given = `00-${trace}-b7ad6b7169203331-01`

test.each([given, given.replace(/01$/, '00')])('%s is accepted unchanged', header => {
  expect(parseTraceparent(header)).toBe(header)
})

test.each([
  ['nothing', undefined],
  ['several headers', [given, given]],
  ['several headers, joined', `${given}, ${given}`],
  ['an empty one', ''],
  ['a trace of zeros', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`],
  ['a span of zeros', `00-${trace}-${'0'.repeat(16)}-01`],
  ['capital letters', given.toUpperCase()],
  ['another version', given.replace(/^00/, '01')],
  ['the invalid version', given.replace(/^00/, 'ff')],
  ['a header that is too long', `${given}-00`],
  ['a header that is too short', given.slice(0, -1)],
  ['a second line', `${given}\r\nx-evil: 1`],
  ['a line end', `${given}\n`],
])('%s is not accepted', (_, header) => {
  expect(parseTraceparent(header)).toBeNull()
})

test('a new traceparent is valid, and each is different', () => {
  const made = Array.from({ length: 1_000 }, newTraceparent)
  expect(made.filter(traceparent => parseTraceparent(traceparent) === null)).toEqual([])
  expect(new Set(made.map(traceIdOf)).size).toBe(made.length)
})

describe('without a span collector', () => {
  test('a called process joins the given trace', () => {
    expect(plainTracer.start('a', { parent: given }).start('b').traceparent).toBe(given)
    expect(traceIdOf(given)).toBe(trace)
  })

  test('a trace begins when none was given', () => {
    const span = plainTracer.start('a', { parent: null })
    expect(parseTraceparent(span.traceparent)).not.toBeNull()
    expect(span.start('b').traceparent).toBe(span.traceparent)
  })
})
