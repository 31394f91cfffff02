/** Secrets are opened by the keys that sealed them, for their tenant alone, and a rotation changes only the data keys. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createVault } from './vault.ts'

const [first, second] = ['a'.repeat(32), 'b'.repeat(32)]
const secrets = { API_KEY: 'canary' }

test('any secrets are opened as they were, and no two ciphertexts are the same', () => {
  const vault = createVault({ key: first })
  fc.assert(
    fc.property(fc.dictionary(fc.string({ minLength: 1 }), fc.string()), given => {
      const [one, other] = [vault.seal('acme', given), vault.seal('acme', given)]
      expect([vault.open('acme', one), vault.open('acme', other)]).toEqual([given, given])
      expect(one.sealed).not.toBe(other.sealed)
    }),
    { numRuns: 30 },
  )
})

describe('a rotation', () => {
  const before = createVault({ key: first }).seal('acme', secrets)
  const during = createVault({ key: second, oldKey: first })
  const after = createVault({ key: second })

  test('opens with both keys, and seals with the new one', () => {
    expect(during.open('acme', before)).toEqual(secrets)
    expect(after.open('acme', during.seal('acme', secrets))).toEqual(secrets)
  })

  test('encrypts the data key again, and not the secrets', () => {
    const moved = during.rewrap('acme', before)
    if (!moved) throw new Error('The old key does not open it')
    expect(moved.sealed.split('.')[1]).toBe(before.sealed.split('.')[1])
    expect([after.open('acme', moved), createVault({ key: first }).open('acme', moved)]).toEqual([secrets, null])
  })
})

test('another tenant, a changed letter and an unknown key open nothing', () => {
  const vault = createVault({ key: first })
  const { key, sealed } = vault.seal('acme', secrets)
  expect(vault.open('rival', { key, sealed })).toBeNull()
  for (const place of [0, sealed.length - 2]) {
    const changed = sealed.slice(0, place) + (sealed[place] === 'A' ? 'B' : 'A') + sealed.slice(place + 1)
    expect(vault.open('acme', { key, sealed: changed })).toBeNull()
  }
  expect(vault.open('acme', { key, sealed: '' })).toBeNull()
  expect(createVault({ key: second }).open('acme', { key, sealed })).toBeNull()
  expect(() => createVault({}).seal('acme', secrets)).toThrow(/SECRETS_KEY/)
})

test('a text is opened as it was, also if it was stored without a key, and later moves to the new key', () => {
  const [open, one] = [createVault({}), createVault({ key: first })]
  const [during, after] = [createVault({ key: second, oldKey: first }), createVault({ key: second })]
  expect([open.sealText('acme', 'whsec_a'), one.openText('acme', 'whsec_a')]).toEqual(['whsec_a', 'whsec_a'])
  const sealed = one.sealText('acme', 'whsec_a')
  expect(sealed).not.toContain('whsec_a')
  expect([
    one.openText('acme', sealed),
    one.openText('rival', sealed),
    open.openText('acme', sealed),
    after.openText('acme', sealed),
  ]).toEqual(['whsec_a', null, null, null])
  for (const stored of [sealed, 'whsec_a']) {
    const moved = during.renewText('acme', stored) ?? ''
    expect([after.openText('acme', moved), one.openText('acme', moved)]).toEqual(['whsec_a', null])
    expect([during.renewText('acme', moved), open.renewText('acme', stored)]).toEqual([null, null])
  }
  expect(after.renewText('acme', sealed)).toBeNull()
})
