/** Whatever a handler throws can be told: to viewers in words that are meant for them, to callers with a key in full. */
import { RivuletError } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { failureOf, fullFailureOf } from './failure.ts'

const publicText = { code: 'agent_error', message: 'The agent failed' }

test.each<[string, unknown, string]>([
  ['an error', new Error('no'), 'no'],
  [
    'an error with a cause',
    new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') }),
    'fetch failed: connect ECONNREFUSED',
  ],
  ['an error that says its cause already', new Error('no: why', { cause: new Error('why') }), 'no: why'],
  ['text', 'no', 'no'],
  ['nothing', undefined, 'undefined'],
  ['a symbol', Symbol('no'), 'Symbol(no)'],
  ['what JSON cannot say', 7n, '7'],
  ['half a character and a NUL', new Error('a\ud83d\0'), 'a\ufffd\ufffd'],
  ['an object without a text', Object.create(null), 'Something was thrown that has no text'],
  [
    'an error whose message is not a text',
    Object.assign(new Error(), { message: { toString: null } }),
    'Something was thrown that has no text',
  ],
  ['an error whose message is a number', Object.assign(new Error(), { message: 7 }), '7'],
])('%s is not for viewers', (_, thrown, detail) => {
  expect(failureOf(thrown)).toEqual(publicText)
  expect(fullFailureOf(thrown)).toEqual({ ...publicText, detail })
})

test('an error of ours keeps its code and its text, and no message is endless', () => {
  const failure = { code: 'model_refused', message: 'x'.repeat(2_000) }
  const thrown = new RivuletError('model_refused', 'x'.repeat(1_000_000))
  expect(fullFailureOf(thrown)).toEqual(failure)
})

test('its cause, and a message that is not for viewers, are in the full failure only', () => {
  const wrapped = new RivuletError('agent_error', 'There is no order 7', { cause: new Error('at db-7') })
  expect(failureOf(wrapped)).toEqual({ code: 'agent_error', message: 'There is no order 7' })
  expect(fullFailureOf(wrapped)).toEqual({ code: 'agent_error', message: 'There is no order 7', detail: 'There is no order 7: at db-7' })
  const both = new RivuletError('agent_error', 'The model failed: key sk-1 is bad', { publicMessage: 'The model failed' })
  expect(failureOf(both)).toEqual({ code: 'agent_error', message: 'The model failed' })
  expect(fullFailureOf(both)).toEqual({ code: 'agent_error', message: 'The model failed', detail: 'The model failed: key sk-1 is bad' })
})

test('the secrets of a turn are in neither text, also where one is within another or would be cut', () => {
  const secrets = { A: 'abc', B: 'abcdef' }
  const error = new RivuletError('agent_error', 'abc and abcdef', { publicMessage: 'key abc refused' })
  expect(fullFailureOf(error, secrets)).toEqual({ code: 'agent_error', message: 'key [secret] refused', detail: '[secret] and [secret]' })
  expect(fullFailureOf(new Error(`${'x'.repeat(1_998)}abcdef`), secrets).detail).not.toContain('ab')
})
