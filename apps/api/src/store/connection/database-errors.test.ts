/** Which errors mean that Postgres could not be asked, and which of those mean that the connection broke. */
import { DatabaseError } from 'pg'
import { describe, expect, test } from 'vitest'
import { isConnectionBroken, isDatabaseAway, sqlStateOf } from './database-errors.ts'

/** As drizzle hands errors on. */
const wrapped = (cause: Error) => new Error('Failed query: select 1', { cause })
const systemError = (code: string) => Object.assign(new Error(`write ${code}`), { code, errno: -1, syscall: 'write' })
const rejection = (code: string) => Object.assign(new DatabaseError('refused', 1, 'error'), { code })

describe.each(['EPIPE', 'ECONNRESET', 'ECONNABORTED', 'ENETUNREACH', 'EAI_AGAIN'])('a socket that fails with %s', code => {
  test('has no SQLSTATE, also where the code has five capitals, and means that Postgres could not be asked', () => {
    for (const error of [systemError(code), wrapped(systemError(code))]) {
      expect(sqlStateOf(error)).toBeUndefined()
      expect(isDatabaseAway(error)).toBe(true)
    }
  })
})

test.each([
  ['a broken pipe', systemError('EPIPE')],
  ['a reset', wrapped(systemError('ECONNRESET'))],
  ['an end without a word', wrapped(new Error('Connection terminated unexpectedly'))],
  ['a connection that Postgres closes', wrapped(rejection('57P01'))],
])('%s is a broken connection: a fresh one may do better', (_, error) => {
  expect([isConnectionBroken(error), isDatabaseAway(error)]).toEqual([true, true])
})

test.each([
  ['a query that takes too long', new Error('Query read timeout'), true],
  ['a server that refuses connections', systemError('ECONNREFUSED'), true],
  ['a statement that is canceled', rejection('57014'), true],
  ['a deadlock', wrapped(rejection('40P01')), true],
  ['a value that Postgres does not take', wrapped(rejection('22P02')), false],
  ['a fault of ours', new TypeError('x is not a function'), false],
])('%s is no broken connection', (_, error, isAway) => {
  expect([isConnectionBroken(error), isDatabaseAway(error)]).toEqual([false, isAway])
})

test('the SQLSTATE is found wherever drizzle has wrapped it', () => {
  expect(sqlStateOf(wrapped(rejection('42P01')))).toBe('42P01')
})
