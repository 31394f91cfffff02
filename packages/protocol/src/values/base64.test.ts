import { describe, expect, test } from 'vitest'
import { base64Bytes, base64Of, canonicalBase64, growBase64, startBase64, toBase64 } from './base64.ts'

const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)

test('bytes of any length and value become base64, and base64Bytes returns their number', () => {
  for (let length = 0; length <= 256; length += 1) {
    const text = base64Of(everyByte.slice(0, length))
    expect(Uint8Array.from(atob(text), byte => byte.charCodeAt(0))).toEqual(everyByte.slice(0, length))
    expect(base64Bytes(text)).toBe(length)
  }
})

test('more bytes than one function call can take as arguments are encoded too', () => {
  const many = new Uint8Array(1_000_000).fill(7)
  expect(base64Bytes(base64Of(many))).toBe(1_000_000)
})

describe('growing', () => {
  test('bytes cut in two anywhere grow to the same text, and to the length of both', () => {
    const whole = everyByte.slice(250)
    for (let cut = 0; cut <= whole.length; cut += 1) {
      const grown = growBase64(startBase64(base64Of(whole.slice(0, cut))), base64Of(whole.slice(cut)))
      expect(toBase64(grown)).toBe(base64Of(whole))
      expect(grown.byteLength).toBe(whole.length)
    }
  })

  test('one byte at a time, every intermediate text is whole base64', () => {
    let grown = startBase64('')
    for (let length = 1; length <= 10; length += 1) {
      grown = growBase64(grown, base64Of(everyByte.slice(length - 1, length)))
      expect(toBase64(grown)).toBe(base64Of(everyByte.slice(0, length)))
    }
  })

  test('the earlier value does not change', () => {
    const before = startBase64('AQ==')
    growBase64(before, 'Ag==')
    expect(toBase64(before)).toBe('AQ==')
  })
})

test('canonicalBase64 gives equal bytes the same text', () => {
  expect(canonicalBase64('AR==')).toBe('AQ==')
  expect(() => canonicalBase64('*')).toThrow(expect.objectContaining({ code: 'bad_event' }))
})
