/** A follower of the feed, while a thousand tasks a second are committed by eight connections, later ones before earlier ones: it misses none. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@rivulet/client'
import pg from 'pg'
import { expect, test } from 'vitest'
import { seededRandom } from '../support/agents/scripts.ts'
import { withPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const perSecond = 1_000
const seconds = 20
const writers = 8
/** Of one transaction. */
const rows = 5

test('a follower gets every one of 20,000 entries once, at 1,000 a second', { timeout: 120_000 }, async () => {
  await withPlatform({ workers: 0 }, async ({ url, databaseUrl }) => {
    const seen: string[] = []
    const leaving = new AbortController()
    const client = createClient({ url })
    const { next } = await client.feed.list()
    const following = (async () => {
      for await (const { task } of client.feed.follow({ after: next, signal: leaving.signal })) seen.push(task)
    })().catch(() => {})
    const pool = new pg.Pool({ connectionString: databaseUrl, max: writers })
    const random = seededRandom(27)
    const written: string[] = []
    const everyMs = (1_000 * writers * rows) / perSecond
    await Promise.all(Array.from({ length: writers }, () => write()))
    await until('the follower has all', () => seen.length >= written.length, { timeoutMs: 10_000 })
    leaving.abort()
    await following
    await pool.end()
    expect(written).toHaveLength(perSecond * seconds)
    expect([new Set(seen).size, seen.length]).toEqual([written.length, written.length])

    /** Each transaction has its number at its beginning, and is committed some time later. */
    async function write(): Promise<void> {
      const connection = await pool.connect()
      await connection.query(`select set_config('rivulet.tenant', '*', false)`)
      const began = performance.now()
      for (let round = 0; round < (perSecond * seconds) / (writers * rows); round += 1) {
        const tasks = Array.from({ length: rows }, () => crypto.randomUUID())
        await connection.query('begin')
        const values = `select 'default', 'task.created', unnest($1::uuid[]), 'idle', 'queued'`
        await connection.query(`insert into feed (tenant, type, task, agent, status) ${values}`, [tasks])
        await sleep(random() * everyMs * 0.5)
        await connection.query('commit')
        written.push(...tasks)
        await sleep(Math.max(0, began + (round + 1) * everyMs - performance.now()))
      }
      connection.release()
    }
  })
})
