/** Whatever a handler throws can be told. */
import { RivuletError } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { failureOf } from './failure.ts'

test.each<[string, unknown, string]>([
  ['an error', new Error('no'), 'no'],
  ['text', 'no', 'no'],
  ['nothing', undefined, 'undefined'],
  ['a symbol', Symbol('no'), 'Symbol(no)'],
  ['what JSON cannot say', 7n, '7'],
  ['half a character and a NUL', new Error('a\ud83d\0'), 'a\ufffd\ufffd'],
  ['an object without a text', Object.create(null), 'Something was thrown that has no text'],
  ['an error whose message is none', Object.assign(new Error(), { message: { toString: null } }), 'Something was thrown that has no text'],
  ['an error whose message is a number', Object.assign(new Error(), { message: 7 }), '7'],
])('%s', (_, thrown, message) => {
  expect(failureOf(thrown)).toEqual({ code: 'agent_error', message })
})

test('an error of ours keeps its code, and nobody’s message is endless', () => {
  expect(failureOf(new RivuletError('model_refused', 'x'.repeat(1_000_000)))).toEqual({ code: 'model_refused', message: 'x'.repeat(2_000) })
})
