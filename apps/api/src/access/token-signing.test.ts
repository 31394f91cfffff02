import { expect, test } from 'vitest'
import { deriveSigningKeys, type SigningParts } from './token-signing.ts'

const derive = async (secret: string, parts: SigningParts) => {
  const { root, stored } = await deriveSigningKeys(Buffer.from(secret), parts)
  return { root: root.map(key => key.toString('hex')).join(), stored: stored.map(key => key.toString('hex')).join() }
}

test('every process of an installation derives the same keys', async () => {
  const parts = { key: 'k', pepper: 'p' }
  expect(await derive('secret', parts)).toEqual(await derive('secret', parts))
})

test('the keys of the pepper before follow those of the current one, which sign', async () => {
  const [current, old] = [await derive('secret', { key: 'k', pepper: 'p' }), await derive('secret', { key: 'k', pepper: 'o' })]
  const both = await derive('secret', { key: 'k', pepper: 'p', oldPepper: 'o' })
  expect(both).toEqual({ root: `${current.root},${old.root}`, stored: `${current.stored},${old.stored}` })
})

test('another installation, another pepper and another key have others; RIVULET_KEY is in its own alone', async () => {
  const own = await derive('secret', { key: 'k', pepper: 'p' })
  expect(own.root).not.toBe(own.stored)
  for (const other of [await derive('another', { key: 'k', pepper: 'p' }), await derive('secret', { key: 'k', pepper: 'q' })])
    expect([other.root === own.root, other.stored === own.stored]).toEqual([false, false])
  const changed = await derive('secret', { key: 'l', pepper: 'p' })
  expect([changed.root === own.root, changed.stored === own.stored]).toEqual([false, true])
  expect((await derive('secret', { key: 'pk', pepper: '' })).root).not.toBe((await derive('secret', { key: 'k', pepper: 'p' })).root)
})
