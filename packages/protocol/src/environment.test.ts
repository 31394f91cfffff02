import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readEnvironment, sharedVariables, wholeNumber } from './environment.ts'

const schema = z.object({ NAME: z.string(), COUNT: wholeNumber(3), URL: sharedVariables.REDIS_URL.optional() })
const read = (environment: Record<string, string | undefined>) => readEnvironment('this test', schema, environment)

describe('an environment', () => {
  test('gives what is set, and the default of what is not', () => {
    expect(read({ NAME: 'a', COUNT: '5', OTHER: 'x' })).toEqual({ NAME: 'a', COUNT: 5 })
    expect(read({ NAME: 'a' })).toEqual({ NAME: 'a', COUNT: 3 })
  })

  test('has not set what is set to nothing, as Docker Compose does', () => {
    expect(read({ NAME: 'a', COUNT: '', URL: '' })).toEqual({ NAME: 'a', COUNT: 3 })
    expect(() => read({ NAME: '' })).toThrow('NAME: is needed')
  })

  test('that does not fit is refused in one list, in words, without the values', () => {
    expect(() => read({ COUNT: 'secret', URL: 'http://secret' })).toThrow(
      'The environment of this test does not fit:\n  NAME: is needed\n  COUNT: must be a number\n  URL: must be a redis:// URL',
    )
    expect(() => read({ NAME: 'a', COUNT: '1.5' })).toThrow('COUNT: must be a whole number')
  })
})
