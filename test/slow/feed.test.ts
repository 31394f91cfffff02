/**
 * A follower of the feed, while eight connections commit what a thousand tasks a second bring, later ones before earlier ones: it misses no entry. The entries
 * are written to the table itself, because two cores do not run a thousand turns a second beside it.
 */
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
/** Tasks of one transaction. */
const rows = 5
/** Of a task with one turn. */
const types = ['task.created', 'turn.queued', 'turn.started', 'turn.finished']

test('a follower gets each of the 80,000 entries of 20,000 tasks once, at 1,000 tasks a second', { timeout: 120_000 }, async () => {
  await withPlatform({ workers: 0 }, async ({ url, databaseUrl }) => {
    const seen: string[] = []
    const leaving = new AbortController()
    const client = createClient({ url })
    const { next } = await client.feed.list()
    const following = (async () => {
      for await (const { task, type } of client.feed.follow({ after: next, signal: leaving.signal })) seen.push(`${type} ${task}`)
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
    expect(written).toHaveLength(perSecond * seconds * types.length)
    expect([new Set(seen).size, seen.length]).toEqual([written.length, written.length])

    /** Each transaction has its number at its beginning, and is committed some time later. */
    async function write(): Promise<void> {
      const connection = await pool.connect()
      await connection.query(`select set_config('rivulet.tenant', '*', false)`)
      const began = performance.now()
      for (let round = 0; round < (perSecond * seconds) / (writers * rows); round += 1) {
        const tasks = Array.from({ length: rows }, () => crypto.randomUUID())
        await connection.query('begin')
        const values = `select 'default', type, task, 'idle', 'queued' from unnest($1::uuid[]) as task, unnest($2::text[]) as type`
        await connection.query(`insert into feed (tenant, type, task, agent, status) ${values}`, [tasks, types])
        await sleep(random() * everyMs * 0.5)
        await connection.query('commit')
        written.push(...tasks.flatMap(task => types.map(type => `${type} ${task}`)))
        await sleep(Math.max(0, began + (round + 1) * everyMs - performance.now()))
      }
      connection.release()
    }
  })
})
