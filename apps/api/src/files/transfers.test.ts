/** Transfers of files: shared by tenants, and in line for a while. */
import { expect, test } from 'vitest'
import { Transfers } from './transfers.ts'

test('the callers of a tenant, however many, leave transfers to another tenant, and the next in line begins when one ends', async () => {
  const counts: number[] = []
  const transfers = new Transfers(16, count => counts.push(count))
  const begun = await Promise.all(Array.from({ length: 8 }, (_, i) => transfers.begin('noisy', `key ${i}`)))
  const waiting = transfers.begin('noisy', 'key 9')
  const other = await transfers.begin('quiet', 'key')
  expect(counts.at(-1)).toBe(9)
  begun[0]?.over()
  begun[0]?.over()
  begun[1]?.over()
  const next = await waiting
  for (const each of [...begun, other, next]) each.over()
  expect(counts.at(-1)).toBe(0)
})

test('a caller has at most a quarter, with those that wait, and what it had is free again', async () => {
  const transfers = new Transfers(16, () => {})
  const begun = await Promise.all(Array.from({ length: 4 }, () => transfers.begin('a', 'key')))
  await expect(transfers.begin('a', 'key')).rejects.toMatchObject({ code: 'overloaded', message: expect.stringContaining('A caller') })
  for (const each of begun) each.over()
  await expect(transfers.begin('a', 'key')).resolves.toBeDefined()
})

test('a transfer that waits in vain is overloaded, and leaves its place', async () => {
  const transfers = new Transfers(4, () => {})
  const [first, second] = await Promise.all(['key 1', 'key 2'].map(caller => transfers.begin('a', caller)))
  await expect(transfers.begin('a', 'key 3')).rejects.toMatchObject({ code: 'overloaded', message: expect.stringContaining('its share') })
  first?.over()
  await expect(transfers.begin('a', 'key 3')).resolves.toBeDefined()
  second?.over()
})
