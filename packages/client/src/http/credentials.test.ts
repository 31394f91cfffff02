import { describe, expect, test } from 'vitest'
import { createCredentials } from './credentials.ts'

function begin() {
  let asked = 0
  const credentials = createCredentials({
    token: () => {
      asked += 1
      return `granted ${asked}`
    },
  })
  return { ...credentials, asked: () => asked }
}

describe('a token that a stream hands out', () => {
  test('is what is read with; what changes something is sent with the one that the source gave', async () => {
    const { token, succeed, asked } = begin()
    expect(await token('read')).toBe('granted 1')
    succeed('streamed 1')
    succeed('streamed 2')
    expect([await token('read'), await token('change'), asked()]).toEqual(['streamed 2', 'granted 1', 1])
  })

  test('is given up when the source is asked, because what it gives now is newer and may do more', async () => {
    const { token, renewed, succeed } = begin()
    await token('change')
    succeed('streamed')
    expect(await renewed('granted 1', 'change')).toBe('granted 2')
    expect(await token('read')).toBe('granted 2')
  })

  test('that is refused is followed by one of the source, once for all requests that were refused', async () => {
    const { token, renewed, succeed, asked } = begin()
    await token('read')
    succeed('streamed')
    const found = await Promise.all(['streamed', 'streamed', 'granted 1'].map(refused => renewed(refused, 'read')))
    expect([found, asked()]).toEqual([['granted 2', 'granted 2', 'granted 2'], 2])
    expect(await renewed('streamed', 'read')).toBe('granted 2')
  })
})

test('a key stays, whatever a stream hands out', async () => {
  const { token, renewed, succeed } = createCredentials({ key: 'key' })
  succeed('streamed')
  expect([await token('read'), await token('change'), await renewed('key', 'read')]).toEqual(['key', 'key', null])
})
