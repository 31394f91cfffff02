import { expect, test } from 'vitest'
import { withoutSecrets } from './secret-text.ts'

test.each([
  ['as it is', 'key abc refused', 'key [secret] refused'],
  ['more than once, and in another one', 'abc, abcdef and abc', '[secret], [secret] and [secret]'],
  ['as JSON', JSON.stringify({ key: 'a"b\n' }), '{"key":"[secret]"}'],
  ['as a part of a URL', `https://a.example/?key=${encodeURIComponent('a"b\n')}`, 'https://a.example/?key=[secret]'],
  ['in JSON', { why: ['abc', 7, null], abc: true }, { why: ['[secret]', 7, null], '[secret]': true }],
  ['nowhere', 'ab', 'ab'],
])('a text that has a secret %s is without it', (_, given, expected) => {
  expect(withoutSecrets(given, { A: 'abc', B: 'abcdef', C: 'a"b\n', D: '' })).toEqual(expected)
})

test('without secrets a value is itself', () => {
  const value = { a: 'abc' }
  expect(withoutSecrets(value, {})).toBe(value)
})
