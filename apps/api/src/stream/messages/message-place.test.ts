import type { LogReader } from '@rivulet/broker'
import type { Message } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import type { Feed } from '../feed.ts'
import { findMessagePlace } from './message-place.ts'
import type { MessageSpan } from './message-spans.ts'

const about = { tenant: 'default', task: '0198c0de-0000-7000-8000-000000000001', index: 3 }

test('a message that begins while Postgres is asked for it is sent from its first event on', async () => {
  const { place } = open({ onRead: feed => feed.begin({ before: '2-8', closedAt: null }) })
  expect(await place()).toMatchObject({ kind: 'live', begin: { kind: 'after', cursor: '2-8' } })
})

test('a message that is still to come is waited for from where the feed stands, and not if no turn is left to send it', async () => {
  expect(await open().place()).toMatchObject({ kind: 'live', begin: { kind: 'after', cursor: '2-9' } })
  await expect(open({ isSettled: true }).place()).rejects.toMatchObject({ code: 'not_found' })
})

/** A feed at 2-9, whose log has not the message, and does not change but by the test. */
function open({ onRead, isSettled = false }: { onRead?: (feed: { begin(span: MessageSpan): void }) => void; isSettled?: boolean } = {}) {
  let span: MessageSpan | undefined
  const begin = (given: MessageSpan) => {
    span = given
  }
  const ready = async () => {}
  const feed = {
    ...{ check: ready, ready, loads: () => 1, position: () => '2-9', messageSpan: () => span, isSettled: () => isSettled },
  } as Partial<Feed> as Feed
  const read = async (): Promise<Message | undefined> => {
    onRead?.({ begin })
    return undefined
  }
  return { place: () => findMessagePlace({ hub: { open: async () => feed }, log: {} as LogReader, read }, about, null) }
}
