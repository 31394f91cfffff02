import { setMaxListeners } from 'node:events'
import { type Cursor, compareCursors, formatCursor } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import type { FeedRead, TenantEntry } from '../store/feed/read-feed.ts'
import { createFeedTail } from './feed-tail.ts'
import { followFeed } from './follow-feed.ts'

test('many followers of several tenants get every entry of their tenant once, with one query a poll for all of them', async () => {
  const feed = createFeed()
  const leaving = new AbortController()
  setMaxListeners(0, leaving.signal)
  const got = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      const seen: string[] = []
      void collect(feed, i % 2 ? 'a' : 'b', seen, leaving.signal)
      return seen
    }),
  )
  await expect.poll(() => feed.pages).toBe(20)
  for (let i = 1; i <= 200; i += 1) {
    feed.add(i % 3 ? 'a' : 'b')
    if (i % 20 === 0) await new Promise(resolve => setTimeout(resolve, 2))
  }
  for (const [i, seen] of got.entries()) await expect.poll(() => seen).toEqual(feed.of(i % 2 ? 'a' : 'b'))
  // Without the shared reading each poll would cost a page for each follower.
  expect(feed.pages).toBeLessThan(20 + 20)
  leaving.abort()
  feed.tail.close()
})

test('a follower that was away while the tail went on reads what it missed by itself, and misses nothing', async () => {
  const feed = createFeed()
  const leaving = new AbortController()
  const quick: string[] = []
  void collect(feed, 'a', quick, leaving.signal)
  const slow = followFeed(feed, { tenant: 'a', after: '0-0', signal: leaving.signal })
  const heard: string[] = []
  await slow.next()
  for (let i = 0; i < 30; i += 1) {
    feed.add('a')
    await expect.poll(() => quick.length).toBe(i + 1)
    if (i % 10 === 9) for (const { seq } of (await slow.next()).value.entries) heard.push(seq)
  }
  while (heard.length < 30) for (const { seq } of (await slow.next()).value.entries) heard.push(seq)
  expect(heard).toEqual(feed.of('a'))
  leaving.abort()
  feed.tail.close()
})

test('a failed poll is reported, and the next one delivers', async () => {
  const feed = createFeed()
  const leaving = new AbortController()
  const seen: string[] = []
  void collect(feed, 'a', seen, leaving.signal)
  await expect.poll(() => feed.polls).toBeGreaterThan(0)
  feed.fail()
  feed.add('a')
  await expect.poll(() => seen).toEqual(feed.of('a'))
  expect(feed.errors).toHaveLength(1)
  leaving.abort()
  feed.tail.close()
})

type Feed = ReturnType<typeof createFeed>

async function collect(feed: Feed, tenant: string, seen: string[], signal: AbortSignal): Promise<void> {
  const read = (request: { after: Cursor }) => {
    feed.pages += 1
    return feed.read({ ...request, tenant })
  }
  try {
    for await (const { entries } of followFeed({ read, tail: feed.tail }, { tenant, after: '0-0', signal }))
      seen.push(...entries.map(({ seq }) => seq))
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

function createFeed() {
  const entries: TenantEntry[] = []
  let failures = 0
  const counts = { polls: 0, pages: 0, errors: [] as unknown[] }
  const tail = createFeedTail({
    pollMs: 1,
    onError: error => counts.errors.push(error),
    async read(after) {
      counts.polls += 1
      if (failures > 0) {
        failures -= 1
        throw new Error('Postgres is unavailable')
      }
      return read({ after })
    },
  })
  return Object.assign(counts, { tail, read, add, of, fail })

  function fail(): void {
    failures += 1
  }

  async function read({ after, tenant }: { after: Cursor; tenant?: string }): Promise<FeedRead> {
    await null
    const found = entries.filter(entry => (!tenant || entry.tenant === tenant) && compareCursors(entry.seq, after) > 0)
    const end = formatCursor(entries.length + 1, 0)
    return { entries: found, next: compareCursors(end, after) > 0 ? end : after, isFull: false }
  }

  function add(tenant: string): void {
    const seq = formatCursor(entries.length + 1, entries.length + 1)
    entries.push({ seq, tenant, type: 'task.created', task: 't', agent: 'echo', at: '' })
  }

  function of(tenant: string): string[] {
    return entries.filter(entry => entry.tenant === tenant).map(({ seq }) => seq)
  }
}
