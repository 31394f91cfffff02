import { describe, expect, test } from 'vitest'
import { createTaskTokens, type TokenRequest } from './task-token.ts'
import type { SigningKeys } from './token-signing.ts'

const request: TokenRequest = {
  ...{ tenant: 'acme', task: 'one', can: ['read', 'send'], key: 'k', subject: 'anna', startedAt: 99_500, ttlSeconds: 60, until: null },
}
const keysOf = (secret: string, ...before: string[]): SigningKeys => ({
  root: [Buffer.from(`${secret} of the environment`), ...before.map(old => Buffer.from(`${old} of the environment`))],
  stored: [Buffer.from(secret), ...before.map(old => Buffer.from(old))],
})
const tokensAt = (seconds: number, keys = keysOf('secret')) =>
  createTaskTokens(
    () => keys,
    () => seconds * 1_000,
  )

test('what was signed is read by every process that has the keys', () => {
  const { token, expiresAt, claims } = tokensAt(100).issue(request)
  expect(expiresAt).toBe(new Date(160_000).toISOString())
  const { ttlSeconds: _, until: __, ...said } = request
  expect(claims).toEqual({ ...said, session: expect.any(String), issuedAt: 100, expiresAt: 160, endsAt: 3_700 })
  expect(tokensAt(159).verify(token)).toEqual(claims)
  expect(tokensAt(100).issue(request).claims.session).not.toBe(claims.session)
})

test('a token ends at its second, and not after its key', () => {
  const { token } = tokensAt(100).issue(request)
  expect(tokensAt(160).verify(token)).toBeNull()
  const short = tokensAt(100).issue({ ...request, until: new Date(110_000) })
  expect(tokensAt(110).verify(short.token)).toBeNull()
})

describe('the token that follows', () => {
  test('is of the same session, lives as long again, and may only read', () => {
    const { claims } = tokensAt(100).issue(request)
    const next = tokensAt(140).renew(claims)
    expect(tokensAt(199).verify(next.token)).toEqual({ ...claims, can: ['read'], issuedAt: 140, expiresAt: 200 })
  })

  test('never outlives the session: an hour after the first was made, or the end of its key', () => {
    let { claims } = tokensAt(100).issue({ ...request, ttlSeconds: 3_000 })
    for (const seconds of [2_100, 3_600]) claims = tokensAt(seconds).renew(claims).claims
    expect(claims.expiresAt).toBe(3_700)
    const short = tokensAt(100).issue({ ...request, until: new Date(150_000) })
    expect(tokensAt(140).renew(short.claims).claims.expiresAt).toBe(150)
  })
})

test('no byte of a token can be changed, left out or added', () => {
  const tokens = tokensAt(100)
  const { token } = tokens.issue(request)
  for (let i = 0; i < token.length; i += 1) {
    expect(tokens.verify(`${token.slice(0, i)}${token[i] === 'A' ? 'B' : 'A'}${token.slice(i + 1)}`)).toBeNull()
    expect(tokens.verify(`${token.slice(0, i)}${token.slice(i + 1)}`)).toBeNull()
    expect(tokens.verify(`${token.slice(0, i)}A${token.slice(i)}`)).toBeNull()
  }
})

test('the last letter of a token has one spelling', () => {
  const tokens = tokensAt(100)
  const { token } = tokens.issue(request)
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
  expect(letters.filter(letter => tokens.verify(token.slice(0, -1) + letter))).toEqual([token.at(-1)])
})

test('other keys sign other tokens, and before the keys are known no token can be made', () => {
  const { token } = tokensAt(100).issue(request)
  expect(tokensAt(100, keysOf('another')).verify(token)).toBeNull()
  const none = createTaskTokens(() => null)
  expect(none.verify(token)).toBeNull()
  expect(() => none.issue(request)).toThrow(expect.objectContaining({ code: 'dependency_unavailable' }))
})

test('a token that was signed before a rotation is valid as long as the old key is accepted, and its successor is signed by the new one', () => {
  const { token } = tokensAt(100).issue(request)
  const rotated = tokensAt(100, keysOf('next', 'secret'))
  const claims = rotated.verify(token)
  if (!claims) throw new Error('The token is not valid')
  const onlyNew = tokensAt(100, keysOf('next'))
  expect([onlyNew.verify(token), onlyNew.verify(rotated.renew(claims).token)]).toMatchObject([null, { task: 'one' }])
})

test('tokens of RIVULET_KEY and of stored keys are signed apart: neither can pass for the other', () => {
  const { root, stored } = keysOf('secret')
  const isGood = (key: string, keys: typeof forged) => tokensAt(100).verify(tokensAt(100, keys).issue({ ...request, key }).token) !== null
  const forged = { root: stored, stored: root }
  expect([isGood('root', { root, stored }), isGood('k', { root, stored })]).toEqual([true, true])
  expect([isGood('root', forged), isGood('k', forged)]).toEqual([false, false])
})

test.each(['', 'rvt_', 'rvt_.', `rvt_e30.${'A'.repeat(43)}`, `rvk_${'0'.repeat(16)}_${'A'.repeat(43)}`])('%j is no token', text => {
  expect(tokensAt(100).verify(text)).toBeNull()
})
