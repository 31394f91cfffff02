import type { Message, MessageQuery } from '@rivulet/client'
import { expect, test } from 'vitest'
import { readEarlier } from './earlier-page.ts'

test.each([
  ['a full page', 250, 100, 100],
  ['all there are', 30, 100, 30],
  ['as many as fit', 250, 40, 25],
  ['one, where a page holds one', 250, 1, 1],
])('%s: right before the index, without a hole', async (_, before, fitting, expected) => {
  const messages = Array.from({ length: 300 }, (_, index) => ({ index }) as Message)
  const page = async ({ after = -1, limit = 100 }: MessageQuery = {}) => {
    const data = messages.slice(after + 1, after + 1 + Math.min(limit, fitting))
    return { data, nextCursor: data.at(-1)?.index ?? null }
  }
  const read = (await readEarlier({ messages: page }, before)).map(({ index }) => index)
  expect(read).toEqual(Array.from({ length: expected }, (_, i) => before - expected + i))
})

test('nothing, where a message is gone', async () => {
  expect(await readEarlier({ messages: async () => ({ data: [], nextCursor: null }) }, 7)).toEqual([])
})
