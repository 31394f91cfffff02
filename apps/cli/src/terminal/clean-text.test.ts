import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cleanLine, cleanText, createTextCleaner } from './clean-text.ts'

const esc = '\u001b'

test.each([
  ['a colour', `${esc}[31mred${esc}[0m`, 'red'],
  ['a cursor movement', `a${esc}[2J${esc}[1;1Hb`, 'ab'],
  ['a title', `a${esc}]0;owned\u0007b`, 'ab'],
  ['a link', `${esc}]8;;http://evil.example${esc}\\click${esc}]8;;${esc}\\`, 'click'],
  ['the clipboard', `${esc}]52;c;Zm9v${esc}\\x`, 'x'],
  ['a terminal reset', `${esc}cx`, 'x'],
  ['a character set', `${esc}(0x`, 'x'],
  ['one-character forms', 'a\u009b31mb\u009d0;title\u009cc', 'abc'],
  ['bells, backspaces and returns', 'a\u0007b\u0008c\rd\u007fe', 'abcde'],
  ['marks that reorder text', 'a\u202eb\u2066c', 'abc'],
  ['a sequence that ends in the middle', `a${esc}[31`, 'a'],
  ['a sequence in a sequence', `a${esc}[3${esc}[1mb`, 'ab'],
])('%s does not reach the terminal', (_, text, cleaned) => {
  expect(cleanText(text)).toBe(cleaned)
})

test('words, line breaks, tabs, accents and emoji stay as they are', () => {
  const text = 'Grüße,\n\t日本語 👩‍👩‍👧 — [31m is no sequence'
  expect(cleanText(text)).toBe(text)
})

test('a string that is never closed takes its line with it, and not the rest', () => {
  expect(cleanText(`a${esc}]0;never closed\nb`)).toBe('a\nb')
})

test('a line is one line', () => {
  expect(cleanLine(` a\n\n b${esc}[1m\tc `)).toBe('a b c')
})

const nasty = fc.array(
  fc.oneof(fc.constantFrom(esc, '[', ']', ';', '3', 'm', '\\', '\u0007', '\u009b', '\u009d', '\n', '\r', 'P', '\u202e'), fc.string()),
)

test('however text is cut, what is left is the same, and holds nothing that a terminal obeys', () => {
  fc.assert(
    fc.property(nasty, pieces => {
      const whole = cleanText(pieces.join(''))
      const clean = createTextCleaner()
      expect(pieces.map(clean).join('')).toBe(whole)
      expect(Array.from(whole).filter(char => char !== '\n' && char !== '\t' && /\p{Cc}/u.test(char))).toEqual([])
    }),
  )
})
