/** Tenants share the connections of a process: what one of them asks keeps no other waiting, and a list ends in time. */
import { sql } from 'drizzle-orm'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createTestDatabase } from '../../../../../test/support/engines/database.ts'
import { toRivuletError } from '../../http/errors.ts'
import { openDatabase } from './database.ts'

let url: string
beforeAll(async () => {
  url = (await createTestDatabase()).url
})

function open() {
  const database = openDatabase({ url, onError: () => {} })
  onTestFinished(() => database.close())
  return database
}

describe.each(['databaseFor', 'listsFor', 'filesFor'] as const)('%s', pool => {
  test('leaves connections to another tenant, however many statements of a tenant run', async () => {
    const database = open()
    let ended = 0
    const sleeping = Array.from({ length: 80 }, () =>
      database[pool]('a')
        .execute(sql`select pg_sleep(2.5)`)
        .finally(() => (ended += 1)),
    )
    const results = Promise.allSettled(sleeping)
    const reads = Array.from({ length: 20 }, () => database[pool]('b').execute(sql`select 1 as one`))
    expect((await Promise.all(reads)).map(({ rows }) => rows)).toEqual(reads.map(() => [{ one: 1 }]))
    expect(ended).toBe(0)
    const refused = (await results).flatMap(result => (result.status === 'rejected' ? [toRivuletError(result.reason)] : []))
    expect(refused.length).toBeGreaterThan(0)
    expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(['overloaded']))
    expect(Object.values(database.waitingForShare())).toEqual([0, 0, 0])
  })

  test('gives back the share of a statement or transaction that fails', async () => {
    const database = open()
    for (let i = 0; i < 30; i += 1) {
      const db = database[pool]('a')
      await expect(db.execute(sql`select nothing`)).rejects.toThrow()
      await expect(db.transaction(tx => tx.execute(sql`select nothing`))).rejects.toThrow()
    }
    expect((await database[pool]('a').execute(sql`select 1 as one`)).rows).toEqual([{ one: 1 }])
  })
})

test('a list that takes too long is overloaded, with a hint, and its connection is good for the next', async () => {
  const { listsFor } = open()
  const failed = await listsFor('a').execute(sql`select pg_sleep(30)`).catch(toRivuletError)
  expect(failed).toMatchObject({ code: 'overloaded', publicMessage: expect.stringContaining('narrow it') })
  expect((await listsFor('a').execute(sql`select 1 as one`)).rows).toEqual([{ one: 1 }])
})
