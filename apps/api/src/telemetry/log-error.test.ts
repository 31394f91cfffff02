/** What is logged of an error, and what never is. */
import { RivuletError } from '@rivulet/protocol'
import { DrizzleQueryError } from 'drizzle-orm'
import { expect, test } from 'vitest'
import { describeError } from './log-error.ts'

test('the log has the reason and the place of a failed query, but not its values', () => {
  const refused = Object.assign(new Error('duplicate key value'), { code: '23505', detail: 'Key (name)=(my secret) exists' })
  const failed = new DrizzleQueryError('insert into tasks values ($1)', ['my secret'], refused)
  const told = describeError(new RivuletError('dependency_unavailable', 'A database is unavailable', { cause: failed }))
  expect(told).toMatchObject({
    type: 'RivuletError',
    code: '23505',
    message: 'A database is unavailable: A query failed: duplicate key value',
  })
  expect(JSON.stringify(told)).not.toContain('secret')
  expect(JSON.stringify(told)).toContain('log-error.test.ts')
})

test('an error that is its own cause, and a thrown value that is not an error, are described', () => {
  const odd = new Error('odd')
  odd.cause = odd
  expect(describeError(odd)).toMatchObject({ message: 'odd' })
  expect(describeError('a secret')).toEqual({ type: 'string', message: 'A value that is not an error was thrown' })
})
