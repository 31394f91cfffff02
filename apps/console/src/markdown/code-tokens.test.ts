import { describe, expect, test } from 'vitest'
import { codeTokens } from './code-tokens.ts'

const kinds = (code: string, language: string) =>
  codeTokens(code, language)?.flatMap(({ kind, text }) => (kind === 'plain' ? [] : [`${kind} ${text}`]))

describe('the tokens of code', () => {
  test.each([
    ['ts', 'const a = "x" + 12 // why', ['keyword const', 'text "x"', 'number 12', 'comment // why']],
    ['python', 'def f(): # why\n  return None', ['keyword def', 'comment # why', 'keyword return', 'keyword None']],
    ['sql', "SELECT 'a' FROM b -- why", ['keyword SELECT', "text 'a'", 'keyword FROM', 'comment -- why']],
    ['yaml', 'on: true # why', ['keyword true', 'comment # why']],
  ])('%s', (language, code, expected) => expect(kinds(code, language)).toEqual(expected))

  test('together are the code, also where it is cut off', () => {
    for (const code of ['const a = "never closed', '/* never closed', "it's `one\n` thing", '', 'x'])
      expect(
        codeTokens(code, 'ts')
          ?.map(({ text }) => text)
          .join(''),
      ).toBe(code)
  })

  test('a language that is not known has no tokens', () => expect(codeTokens('a b', 'klingon')).toBeNull())
})
