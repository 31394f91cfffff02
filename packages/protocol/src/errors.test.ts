import { describe, expect, test } from 'vitest'
import { errorTable, isErrorCode, RivuletError } from './errors.ts'

const rows = Object.entries(errorTable) as [keyof typeof errorTable, { status?: number; retry: boolean; afterSeconds?: number }][]

describe('the table', () => {
  test('statuses are those of errors, and each code is a lower-case word', () => {
    for (const [code, { status }] of rows) {
      expect(code).toMatch(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/)
      if (status !== undefined) expect(status >= 400 && status < 600).toBe(true)
    }
  })

  test('only retryable errors have afterSeconds, an integer of at least 1', () => {
    for (const [, { retry, afterSeconds }] of rows) {
      if (afterSeconds === undefined) continue
      expect(retry).toBe(true)
      expect(Number.isInteger(afterSeconds) && afterSeconds >= 1).toBe(true)
    }
  })

  test('errors of the caller are not retryable; errors of the server are', () => {
    const retriedAnyway = [
      'request_timeout',
      'task_busy',
      'in_flight',
      'too_many_turns',
      'too_many_signals',
      'too_many_streams',
      'quota_exceeded',
      'rate_limited',
    ]
    for (const [code, { status, retry }] of rows) {
      if (status !== undefined) expect([code, retry]).toEqual([code, status >= 500 || retriedAnyway.includes(code)])
    }
  })

  test.each([
    ['body_too_large', 413],
    ['json_too_deep', 400],
    ['json_too_complex', 400],
    ['invalid_characters', 400],
    ['validation_failed', 400],
    ['invalid_json', 400],
    ['unsupported_media_type', 415],
    ['unknown_agent', 422],
    ['task_not_found', 404],
    ['model_not_found', 404],
    ['too_many_turns', 429],
    ['task_busy', 409],
    ['in_flight', 409],
    ['idempotency_key_reused', 422],
    ['bad_cursor', 400],
  ] as const)('%s has the status %i of the contract', (code, status) => {
    expect(errorTable[code].status).toBe(status)
  })
})

describe('an error', () => {
  test('carries its row, its details and its cause', () => {
    const cause = new Error('refused')
    const details = [{ path: '/a', reason: 'Required' }]
    const error = new RivuletError('dependency_unavailable', 'No answer', { cause, details })
    expect(error).toMatchObject({ name: 'RivuletError', code: 'dependency_unavailable', message: 'No answer', cause, details })
    expect(error.row).toEqual({ status: 503, retry: true, afterSeconds: 2 })
    expect('cause' in new RivuletError('internal', '')).toBe(false)
  })

  test('only codes of the table are error codes, not inherited properties', () => {
    expect(isErrorCode('task_not_found')).toBe(true)
    expect(['toString', '__proto__', 'constructor', 'nope', 1, null].filter(isErrorCode)).toEqual([])
  })
})
