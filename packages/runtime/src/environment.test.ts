import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readEnvironment, sharedVariables, wholeNumber } from './environment.ts'

const schema = z.object({ NAME: z.string(), COUNT: wholeNumber(3), URL: sharedVariables.REDIS_URL.optional() })
const read = (environment: Record<string, string | undefined>) => readEnvironment('this test', schema, environment)

describe('an environment', () => {
  test('returns the variables that are set, and defaults for the others', () => {
    expect(read({ NAME: 'a', COUNT: '5', OTHER: 'x' })).toEqual({ NAME: 'a', COUNT: 5 })
    expect(read({ NAME: 'a' })).toEqual({ NAME: 'a', COUNT: 3 })
  })

  test('treats an empty variable as not set, because Docker Compose sets empty ones', () => {
    expect(read({ NAME: 'a', COUNT: '', URL: '' })).toEqual({ NAME: 'a', COUNT: 3 })
    expect(() => read({ NAME: '' })).toThrow('NAME: is required')
  })

  test('may name several URLs of the API, and nothing else', () => {
    const url = z.object({ RIVULET_URL: sharedVariables.RIVULET_URL })
    const urls = 'http://a:4001, https://b'
    expect(readEnvironment('this test', url, { RIVULET_URL: urls })).toEqual({ RIVULET_URL: urls })
    for (const wrong of ['a:4001', 'http://a,', 'http://a,b', 'redis://a'])
      expect(() => readEnvironment('this test', url, { RIVULET_URL: wrong })).toThrow('RIVULET_URL: must be an http:// or https:// URL')
  })

  test('that is invalid is rejected with one list of reasons, without the values', () => {
    expect(() => read({ COUNT: 'secret', URL: 'http://secret' })).toThrow(
      'Invalid environment of this test:\n  NAME: is required\n  COUNT: must be a number\n  URL: must be a redis:// URL',
    )
    expect(() => read({ NAME: 'a', COUNT: '1.5' })).toThrow('COUNT: must be a whole number')
  })
})
