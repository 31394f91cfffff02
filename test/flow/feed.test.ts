/** The feed over HTTP: pages and a stream, resumed exactly, across two APIs and their deaths. */
import { createClient } from '@rivulet/client'
import type { FeedEntry } from '@rivulet/contract/feed'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2 })
})
afterAll(() => platform.close())

const clientOf = (api = 0) => createClient({ url: platform.urls[api] ?? '' })

test('a turn has its entries in order, and its rows can be read when its end is in the feed', async () => {
  const client = clientOf()
  const leaving = new AbortController()
  const seen: FeedEntry[] = []
  const { next } = await client.feed.list()
  const following = (async () => {
    for await (const entry of client.feed.follow({ after: next, signal: leaving.signal })) {
      seen.push(entry)
      if (entry.type !== 'turn.finished') continue
      const { data } = await client.tasks.get(entry.task).messages()
      expect(data.length).toBeGreaterThan(1)
    }
  })()
  const task = await client.tasks.create({ agent: 'echo', input: 'hello' })
  await until('its end is in the feed', () => seen.some(({ type, task: id }) => type === 'turn.finished' && id === task.id))
  await task.remove()
  await until('its removal is in the feed', () => seen.some(({ type, task: id }) => type === 'task.deleted' && id === task.id))
  leaving.abort()
  await following.catch(error => expect(leaving.signal.aborted, String(error)).toBe(true))
  expect(seen.map(({ type, turn, status }) => [type, turn, status])).toEqual([
    ['task.created', undefined, 'queued'],
    ['turn.queued', 1, 'queued'],
    ['turn.started', 1, 'running'],
    ['turn.finished', 1, 'completed'],
    ['task.deleted', undefined, 'completed'],
  ])
})

test('a follower moves from an API that is killed to another one, and gets every entry once', async () => {
  const victim = await platform.startApi()
  const client = createClient({ url: victim.url, fetch: (input, init) => fetch(isUp ? input : toOther(input), init) })
  let isUp = true
  const toOther = (input: unknown) => String(input).replace(victim.url, platform.urls[1] ?? '')
  const leaving = new AbortController()
  const seen: FeedEntry[] = []
  const { next } = await client.feed.list()
  void (async () => {
    for await (const entry of client.feed.follow({ after: next, types: ['task.created'], signal: leaving.signal })) seen.push(entry)
  })().catch(() => {})
  const made: string[] = []
  const other = clientOf(1)
  for (let i = 0; i < 30; i += 1) {
    made.push((await other.tasks.create({ agent: 'echo', input: 'hello' })).id)
    if (i === 10) {
      await until('the first API has delivered', () => seen.length > 0)
      isUp = false
      await victim.kill()
    }
  }
  await until('all are there', () => seen.length >= made.length)
  expect(seen.map(({ task }) => task).sort()).toEqual(made.sort())
  leaving.abort()
})

test('pages lead from the oldest entry to the newest, and a filter chooses', async () => {
  const client = clientOf()
  const task = await client.tasks.create({ agent: 'echo', input: 'hello' })
  await task.result()
  const all: FeedEntry[] = []
  let after: string | undefined
  await until('the feed has the end', async () => {
    const { data, next } = await client.feed.list({ after, limit: 7 })
    all.push(...data)
    after = next
    return all.some(({ type, task: id }) => id === task.id && type === 'turn.finished')
  })
  expect(new Set(all.map(({ seq }) => seq)).size).toBe(all.length)
  const { data } = await client.feed.list({ types: ['turn.finished'], agent: 'echo' })
  expect(new Set(data.map(({ type }) => type))).toEqual(new Set(['turn.finished']))
  expect((await client.feed.list({ agent: 'unused' })).data).toEqual([])
})

describe('a request that makes no sense is refused', () => {
  test.each(['after=x', 'after=1', 'types=none', 'types=', 'agent=NO', 'limit=0', 'surprise=1'])('%s', async query => {
    const { status, body } = await platform.client.get<ErrorReply>(`/v1/feed?${query}`)
    expect([status, body.error.code]).toEqual([400, 'validation_failed'])
  })

  test('a Last-Event-ID that is not a place', async () => {
    const headers = { accept: 'text/event-stream', 'last-event-id': 'x' }
    const response = await fetch(`${platform.url}/v1/feed`, { headers })
    const { error } = (await response.json()) as ErrorReply
    expect([response.status, error.code]).toEqual([400, 'bad_cursor'])
  })
})
