import fc from 'fast-check'
import { expect, test } from 'vitest'
import { charsOf, cutByteText, decodeByteText, encodeByteText, readByteText } from './byte-text.ts'

const texts = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' })).map(text => text.toWellFormed())

test('a text is read and decoded as it was written, and is as long as its bytes', () => {
  fc.assert(
    fc.property(texts, text => {
      const bytes = Buffer.from(text)
      const read = readByteText(bytes)
      expect(decodeByteText(read)).toBe(text)
      expect(read).toBe(encodeByteText(text))
      expect(read.length).toBe(bytes.length)
      expect(Buffer.from(charsOf(read), 'latin1').equals(bytes)).toBe(true)
    }),
  )
})

test('bytes that are not UTF-8 are read as Node decodes them', () => {
  fc.assert(
    fc.property(fc.uint8Array(), array => {
      const bytes = Buffer.from(array)
      expect(decodeByteText(readByteText(bytes))).toBe(bytes.toString())
    }),
  )
})

test('a line is cut out whole, whatever stands beside it', () => {
  fc.assert(
    fc.property(texts, texts, texts, (before, line, after) => {
      const from = Buffer.byteLength(before)
      expect(decodeByteText(cutByteText(encodeByteText(before + line + after), from, from + Buffer.byteLength(line)))).toBe(line)
    }),
  )
})
