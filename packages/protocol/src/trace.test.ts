/** What is taken for a trace, and what happens to it where nobody collects spans. */
import { describe, expect, test } from 'vitest'
import { newTraceparent, parseTraceparent, plainTracer, traceIdOf } from './trace.ts'

const trace = '0af7651916cd43dd8448eb211c80319c'
const given = `00-${trace}-b7ad6b7169203331-01`

test.each([given, given.replace(/01$/, '00')])('%s is taken as it came', header => {
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
  ['the version that is none', given.replace(/^00/, 'ff')],
  ['more than there may be', `${given}-00`],
  ['less', given.slice(0, -1)],
  ['a line more', `${given}\r\nx-evil: 1`],
  ['a line end', `${given}\n`],
])('%s is none', (_, header) => {
  expect(parseTraceparent(header)).toBeNull()
})

test('a new one is one, and each is another', () => {
  const made = Array.from({ length: 1_000 }, newTraceparent)
  expect(made.filter(traceparent => parseTraceparent(traceparent) === null)).toEqual([])
  expect(new Set(made.map(traceIdOf)).size).toBe(made.length)
})

describe('without anybody who collects spans', () => {
  test('whoever is called joins the trace that was given', () => {
    expect(plainTracer.start('a', { parent: given }).start('b').traceparent).toBe(given)
    expect(traceIdOf(given)).toBe(trace)
  })

  test('a trace begins where none was given', () => {
    const span = plainTracer.start('a', { parent: null })
    expect(parseTraceparent(span.traceparent)).not.toBeNull()
    expect(span.start('b').traceparent).toBe(span.traceparent)
  })
})
