/** Laws of every view as a dialect: wherever its client joins, resumes or misses events, it ends with what is stored. */

import type { StreamFormat } from '@rivulet/contract/fields'
import { type Cursor, type Message, messagesOf } from '@rivulet/protocol'
import { itemsOf } from '@rivulet/views/agentkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Entry, replay, snapshotOf, stateOf, task } from '../../../../../test/support/logs/log-entries.ts'
import { randomLog } from '../../../../../test/support/logs/random-log.ts'
import type { Dialect, DialectStream } from '../../stream/dialects/dialect.ts'
import { formats } from '../formats.ts'

type Sent = { id: string; name: string | null; data: Record<string, unknown> }

/** The texts that a client has after these events, and those that are stored, in a form that can be compared. */
type Reader = { read: (chunks: Record<string, unknown>[]) => string[]; stored: (messages: Message[]) => string[] }

const texts: Reader['stored'] = messages =>
  [...messages.map(({ content }) => (content.type === 'text' ? content.text : '')).join('')].sort()
const deltas = (type: string): Reader['read'] => {
  return chunks => [...chunks.map(chunk => (chunk.type === type ? String(chunk.text) : '')).join('')].sort()
}
type ViewFormat = Exclude<StreamFormat, 'ai-sdk'>
const readers: Record<ViewFormat, Reader> = {
  agentex: { read: agentexTexts, stored: texts },
  agentkit: {
    read: chunks => chunks.flatMap(({ type, part }) => (type === 'CommitPart' ? [JSON.stringify(part)] : [])).sort(),
    stored: messages =>
      itemsOf(messages)
        .flatMap(({ parts }) => parts.map(part => JSON.stringify(part)))
        .sort(),
  },
  'coding-agent': { read: responseTexts, stored: texts },
  'mini-claw-code': { read: deltas('TextDelta'), stored: texts },
}

describe.each(Object.keys(readers) as ViewFormat[])('%s', format => {
  const dialect = formats[format]
  const { read, stored } = readers[format]
  const clientOf = (sent: Sent[]) =>
    read(
      sent
        .slice(
          Math.max(
            sent.findLastIndex(({ name }) => name === 'turn'),
            0,
          ),
        )
        .flatMap(chunkOf),
    )

  test('from the start on, and joined at any event, the client has what is stored', async () => {
    await always(async log => {
      expect(clientOf(take(await open(dialect), log))).toEqual(stored(messagesIn(log)))
      for (let place = 1; place <= log.length; place += 1) {
        const stream = await open(dialect)
        const sent = [...takeSnapshot(stream, log.slice(0, place), 'join'), ...take(stream, log.slice(place))]
        expect(clientOf(sent)).toEqual(stored(messagesIn(log)))
      }
    })
  })

  test('resumed after any chunk, nothing is missing and nothing comes twice', async () => {
    await always(async log => {
      const whole = take(await open(dialect), log)
      for (let cut = 1; cut < whole.length; cut += 1) {
        const { id = '' } = whole[cut - 1] ?? {}
        const place = log.findIndex(({ cursor }) => cursor === id.replace('+', '')) + 1
        const [past, rest] = [log.slice(0, place), log.slice(place)]
        if (id.endsWith('+')) {
          const stream = await open(dialect)
          const sent = [...whole.slice(0, cut), ...takeSnapshot(stream, past, 'gap'), ...take(stream, rest)]
          expect(clientOf(sent)).toEqual(stored(messagesIn(log)))
        } else expect(take(await open(dialect, past), rest)).toEqual(whole.slice(cut))
      }
    })
  })

  test('with a gap anywhere, the turn is streamed again', async () => {
    await always(async log => {
      for (let place = 2; place < log.length - 2; place += 1) {
        const stream = await open(dialect)
        const head = take(stream, log.slice(0, place))
        const gap = takeSnapshot(stream, log.slice(0, place + 2), 'slow')
        expect(gap[0]).toMatchObject({ name: 'turn', data: { task, turn: 1 } })
        expect(clientOf([...head, ...gap, ...take(stream, log.slice(place + 2))])).toEqual(stored(messagesIn(log)))
      }
    })
  })

  function always(law: (log: Entry[]) => Promise<void>): Promise<void> {
    return fc.assert(fc.asyncProperty(randomLog, law), { numRuns: 30 })
  }

  function take(stream: DialectStream, log: Entry[]): Sent[] {
    return log.flatMap(({ cursor, event }) => sentOf(cursor, stream.take(cursor, event)))
  }

  function takeSnapshot(stream: DialectStream, log: Entry[], reason: 'join' | 'gap' | 'slow'): Sent[] {
    const cursor = log.at(-1)?.cursor ?? '0-0'
    return sentOf(cursor, stream.take(cursor, snapshotOf(log, reason)))
  }

  function sentOf(cursor: Cursor, chunks: object[]): Sent[] {
    return chunks.map((chunk, place) => parse(dialect.encode(chunk, cursor, place === chunks.length - 1)))
  }
})

function open(dialect: Dialect, past: Entry[] = []): Promise<DialectStream> {
  return dialect.open({ task, received: past.length > 0 ? replay(past) : undefined })
}

function parse(text: string): Sent {
  const [, name = null, data = '', id = ''] = /^(?:event: (\w+)\n)?data: ([^\n]+)\nid: ([^\n]+)\n\n$/.exec(text) ?? []
  return { id, name, data: JSON.parse(data) }
}

function chunkOf({ name, data }: Sent): Record<string, unknown>[] {
  return name === null ? [data] : []
}

function messagesIn(log: Entry[]): Message[] {
  return messagesOf(stateOf(log))
}

/** A replacement is the whole text of its response so far. */
function responseTexts(chunks: Record<string, unknown>[]): string[] {
  let [said, response] = ['', '']
  for (const { type, text } of chunks) {
    if (type === 'assistant_text_delta') response += text
    if (type === 'assistant_text_replaced') response = String(text)
    if (type === 'turn_finished') [said, response] = [said + response, '']
  }
  return [...(said + response)].sort()
}

function agentexTexts(chunks: Record<string, unknown>[]): string[] {
  const shown = new Map<unknown, { type: string; content: unknown }>()
  for (const { type, index, content, delta } of chunks as {
    type: string
    index: number
    content: never
    delta: { text_delta?: string }
  }[]) {
    const known = shown.get(index)
    if (type === 'start' || type === 'full') shown.set(index, content)
    if (type === 'delta' && known?.type === 'text') shown.set(index, { ...known, content: `${known.content}${delta.text_delta}` })
  }
  const said = Array.from(shown.values(), ({ type, content }) => (type === 'text' ? content : ''))
  return [...said.join('')].sort()
}
