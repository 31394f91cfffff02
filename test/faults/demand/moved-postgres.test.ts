/**
 * The rows of an installation are restored into another Postgres server, whose transactions have lower numbers, or replicated into it, and new processes
 * start on it: the feed, webhooks and `onEnd` go on, and what happened in the first server is not sent twice.
 */
import type { FeedEntry } from '@rivulet/contract/feed'
import { expect, onTestFinished, test } from 'vitest'
import { spendTransactions, startSecondPostgres } from '../../support/engines/second-postgres.ts'
import { type Platform, withPlatform } from '../../support/platform/platform.ts'
import { until } from '../../support/until.ts'
import { receiveDeliveries } from '../disturbances.ts'

const env = { WEBHOOK_ALLOW_PRIVATE: 'on' }
type FeedPage = { data: (FeedEntry & { seq: string })[]; next: string }

test.for(['restored', 'replicated'])(
  'an installation whose rows were %s into another server sends what ends there, once (replicated: skipped where Postgres cannot replicate)',
  { timeout: 300_000 },
  async (how, { skip }) => {
    const [first, second] = [await startSecondPostgres({ isPublisher: true }), await startSecondPostgres()]
    onTestFinished(async () => void (await Promise.all([first.close(), second.close()])))
    const whyNot = how === 'replicated' ? ((await first.whyNoReplication()) ?? (await second.whyNoReplication())) : null
    if (whyNot) skip(whyNot)
    const hooked: string[] = []
    const ended: string[] = []
    const webhook = await receiveDeliveries(async ({ data: { task } }) => void hooked.push(task))
    const onEnd = await receiveDeliveries(async ({ data: { task } }) => void ended.push(task))
    onTestFinished(webhook.close)
    onTestFinished(onEnd.close)

    let before = ''
    let place = ''
    await withPlatform({ env, databaseUrl: first.url }, async platform => {
      await spendTransactions(platform.databaseUrl, 20_000)
      const created = await platform.client.post('/v1/webhooks', { url: webhook.url, events: ['turn.finished'] })
      expect(created.status).toBe(201)
      // What happens from here on comes through the subscription.
      const subscription = how === 'replicated' ? await second.subscribeTo(first.url) : null
      before = await endedTask(platform)
      await until('its end was sent', () => hooked.includes(before) && ended.includes(before))
      place = await until('the feed has its end', async () => {
        const { data, next } = await readFeed(platform, '0-0')
        return data.some(({ task, type }) => task === before && type === 'turn.finished') && next
      })
      for (const each of [...platform.workers, ...platform.apis]) await each.kill('SIGTERM')
      await (subscription ? subscription.takeOver() : second.copyRows(first.url))
    })

    await withPlatform({ env, databaseUrl: second.url }, async platform => {
      const after = await endedTask(platform)
      await until('the end of a task in the second server was sent', () => hooked.includes(after) && ended.includes(after))
      const entries = await until('the feed goes on behind the cursor', async () => {
        const { data } = await readFeed(platform, place)
        return data.some(({ task, type }) => task === after && type === 'turn.finished') && data
      })
      expect(new Set(entries.map(({ task }) => task))).toEqual(new Set([after]))
      for (const sent of [hooked, ended]) expect(sent.toSorted()).toEqual([before, after].toSorted())
      expect(platform.apis[0]?.lines.some(({ msg }) => String(msg).startsWith('Postgres is another server'))).toBe(true)
    })

    async function endedTask({ client }: Platform): Promise<string> {
      const { task } = await client.createTask({ agent: 'echo', input: 'hello', onEnd: { url: onEnd.url } })
      await client.waitForEnd(task.id)
      return task.id
    }
  },
)

async function readFeed({ client }: Platform, after: string): Promise<FeedPage> {
  return (await client.get<FeedPage>(`/v1/feed?after=${after}`)).body
}
