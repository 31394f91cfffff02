import { RivuletError } from '@rivulet/client'
import { expect, test } from 'vitest'
import { sentenceOf } from './failure-sentence.ts'

const url = 'http://127.0.0.1:1'
const refused = new TypeError('fetch failed', { cause: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }) })

test('no server: how to start one', () => {
  const error = new RivuletError('unreachable', 'No answer', { cause: refused })
  expect(sentenceOf(error, url)).toBe('No Rivulet at http://127.0.0.1:1: start one with npm start')
})

test('a server that does not respond gives another sentence', () => {
  expect(sentenceOf(new RivuletError('unreachable', 'No answer within 30000 ms'), url)).toBe(
    'No answer within 30000 ms (http://127.0.0.1:1)',
  )
})

test('a key that is missing: where to give it', () => {
  expect(sentenceOf(new RivuletError('unauthorized', 'No'), url)).toContain('--key')
})

test('what does not fit is named, and what the server says cannot leave its line', () => {
  const details = [{ path: 'priority', reason: 'too\u001b[31m big' }]
  expect(sentenceOf(new RivuletError('validation_failed', 'The body does not fit', { details }), url)).toBe(
    'The body does not fit: priority: too big',
  )
})

test('what the message names already is not repeated', () => {
  const details = [
    { path: '/priority', reason: 'too big' },
    { path: '/agent', reason: 'missing' },
  ]
  const error = new RivuletError('validation_failed', 'Request validation failed: /priority: too big', { details })
  expect(sentenceOf(error, url)).toBe('Request validation failed: /priority: too big; /agent: missing')
})

test('anything else speaks for itself', () => {
  expect(sentenceOf(new Error('out of paper'), url)).toBe('out of paper')
  expect(sentenceOf('just text', url)).toBe('just text')
})
