import { expect, test } from 'vitest'
import { createTaskTokens, type TokenWish } from './task-token.ts'

const wish: TokenWish = { tenant: 'acme', task: 'one', can: ['read', 'send'], key: 'k', ttlSeconds: 60, until: null }
const clock = (seconds: number) => () => seconds * 1_000

test('what was signed is read by every process that has the secret', () => {
  const { token, expiresAt } = createTaskTokens('secret', clock(100)).sign(wish)
  expect(expiresAt).toBe(new Date(160_000).toISOString())
  const claims = { tenant: 'acme', task: 'one', can: ['read', 'send'], key: 'k', issuedAt: 100, expiresAt: 160 }
  expect(createTaskTokens('secret', clock(159)).verify(token)).toEqual(claims)
})

test('a token ends at its second, and not after its key', () => {
  const { token } = createTaskTokens('secret', clock(100)).sign(wish)
  expect(createTaskTokens('secret', clock(160)).verify(token)).toBeNull()
  const short = createTaskTokens('secret', clock(100)).sign({ ...wish, until: new Date(110_000) })
  expect(createTaskTokens('secret', clock(110)).verify(short.token)).toBeNull()
})

test('no byte of a token can be changed, left out or added', () => {
  const tokens = createTaskTokens('secret', clock(100))
  const { token } = tokens.sign(wish)
  for (let i = 0; i < token.length; i += 1) {
    expect(tokens.verify(`${token.slice(0, i)}${token[i] === 'A' ? 'B' : 'A'}${token.slice(i + 1)}`)).toBeNull()
    expect(tokens.verify(`${token.slice(0, i)}${token.slice(i + 1)}`)).toBeNull()
    expect(tokens.verify(`${token.slice(0, i)}A${token.slice(i)}`)).toBeNull()
  }
})

test('another secret, or none, signs other tokens', () => {
  const { token } = createTaskTokens('secret').sign(wish)
  expect(createTaskTokens('another').verify(token)).toBeNull()
  expect(createTaskTokens(undefined).verify(token)).toBeNull()
  expect(createTaskTokens(undefined).verify(createTaskTokens(undefined).sign(wish).token)).toBeNull()
})

test.each(['', 'rvt_', 'rvt_.', `rvt_e30.${'A'.repeat(43)}`, `rvk_${'0'.repeat(16)}_${'A'.repeat(43)}`])('%j is no token', text => {
  expect(createTaskTokens('secret').verify(text)).toBeNull()
})
