/** Heartbeats, stalled sockets and back pressure. The clock is driven by hand. */
import { encodeByteText } from '@rivulet/broker'
import type { Event } from '@rivulet/protocol'
import { createParser } from 'eventsource-parser'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { aiSdk } from '../protocols/ai-sdk/ai-sdk.ts'
import { createAiSdkStream } from '../protocols/ai-sdk/ai-sdk-stream.ts'
import { respondIn } from './dialects/dialect-response.ts'
import { encodeEntry, pieceOf } from './sse-frame.ts'
import { type SseSocket, share } from './sse-response.ts'
import { SseWriter, SseWriters } from './sse-writer.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const passSeconds = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1_000)

describe('heartbeats', () => {
  test('come every fifteen seconds to every stream, not to all at once', async () => {
    const { add } = openWriters()
    const streams = Array.from({ length: 30 }, () => add())
    const beats = () => streams.reduce((count, { written }) => count + written().filter(text => text === ': hb\n').length, 0)
    const perSecond: number[] = []
    for (let second = 0; second < 15; second += 1) {
      const sofar = beats()
      await passSeconds(1)
      perSecond.push(beats() - sofar)
    }
    expect(streams.map(({ written }) => written().length)).toEqual(Array(30).fill(1))
    expect(perSecond).toEqual(Array(15).fill(2))
  })

  test('are those of the stream, if it has its own', async () => {
    const { add } = openWriters()
    const { writer, written } = add()
    writer.heartbeat = () => share([pieceOf(Buffer.from(': hb\nid: 1-2\n\n'))])
    await passSeconds(15)
    expect(written()).toEqual([': hb\nid: 1-2\n\n'])
  })

  test('come to a stream of another protocol as comments between its chunks', async () => {
    const { add } = openWriters()
    const { writer, written } = add()
    const task = '0198c0de-0000-7000-8000-000000000001'
    const ids = { task, turn: 1, attempt: 1, at: 1 }
    const response = respondIn(aiSdk, createAiSdkStream({ task }), writer, () => expect.unreachable())
    const writeEvent = (event: Event, place: number) =>
      response.write(share([encodeEntry({ cursor: `1-${place}`, json: encodeByteText(JSON.stringify(event)) }, event)]))
    writeEvent({ type: 'turn.started', ...ids, firstIndex: 0 }, 1)
    await passSeconds(15)
    writeEvent({ type: 'turn.finished', ...ids, status: 'completed', stopReason: 'stop' }, 2)
    const parts: string[] = []
    const parser = createParser({ onComment: comment => parts.push(comment), onEvent: ({ data }) => parts.push(data) })
    parser.feed(written().join(''))
    expect(parts).toEqual([expect.stringContaining('"start"'), 'hb', expect.stringContaining('"finish"'), '[DONE]'])
  })

  test('wait for a socket that is full, and are not sent after the end', async () => {
    const { add } = openWriters()
    const [full, over] = [add(), add()]
    full.fill()
    full.writer.send('word')
    over.writer.end()
    await passSeconds(15)
    expect([full.written(), over.written()]).toEqual([['word'], []])
  })
})

describe('a socket', () => {
  test('that takes nothing for thirty seconds is cut, one that takes a little is not', async () => {
    const { add, cuts } = openWriters()
    const [dead, slow, open] = [add(), add(), add()]
    for (const { fill, writer } of [dead, slow]) {
      fill()
      writer.send('word'.repeat(100))
    }
    for (let second = 0; second < 40; second += 1) {
      slow.take(1)
      await passSeconds(1)
    }
    expect([dead, slow, open].map(({ isDestroyed }) => isDestroyed())).toEqual([true, false, false])
    expect(cuts()).toBe(1)
  })

  test('whose client has the end and does not leave is cut as well', async () => {
    const { add } = openWriters()
    const { writer, isDestroyed } = add()
    writer.end()
    await passSeconds(29)
    expect(isDestroyed()).toBe(false)
    await passSeconds(2)
    expect(isDestroyed()).toBe(true)
  })

  test('that drains and is full again has not stalled, also if as much waits as before', async () => {
    const { add } = openWriters()
    const { writer, fill, take, isDestroyed } = add()
    fill()
    for (let second = 0; second < 40; second += 1) {
      writer.send('word')
      await passSeconds(1)
      take(4)
      writer.drained()
    }
    expect(isDestroyed()).toBe(false)
  })

  test('counts as blocked while it is full, with what waits for it', async () => {
    const { add, writers } = openWriters()
    const [full] = [add(), add()]
    full.fill()
    full.writer.send('word')
    expect(writers.pressure()).toEqual({ blocked: 1, unsentBytes: 4 })
    full.take(4)
    full.writer.drained()
    expect(writers.pressure()).toEqual({ blocked: 0, unsentBytes: 0 })
  })
})

describe('room', () => {
  test('is there at once while the socket is open, and once it drains', async () => {
    const { writer, fill } = createSocket()
    expect(await writer.room()).toBe(true)
    fill()
    expect(writer.send('word')).toBe(false)
    const room = vi.fn()
    const waiting = writer.room().then(room)
    await Promise.resolve()
    expect(room).not.toHaveBeenCalled()
    writer.drained()
    await waiting
    expect(room).toHaveBeenCalledWith(true)
  })

  test.each(['end', 'leave', 'destroy', 'gone'] as const)('is never there after `%s`, and nothing is written', async how => {
    const { writer, fill, written } = createSocket()
    fill()
    writer.send('word')
    const waiting = writer.room()
    writer[how]()
    expect(await waiting).toBe(false)
    expect(writer.send('more')).toBe(false)
    expect(written()).toEqual(['word'])
  })

  test('a client that leaves comes back later, if there is room to say so', () => {
    const { writer, written } = createSocket()
    writer.leave()
    expect(written()).toEqual([expect.stringMatching(/^retry: \d{4}\n$/)])
  })
})

function openWriters() {
  const writers = new SseWriters(30_000)
  onTestFinished(() => writers.close())
  let cuts = 0
  const onCut = () => {
    cuts += 1
  }
  return { writers, cuts: () => cuts, add: () => createSocket(socket => writers.add(socket, onCut)) }
}

function createSocket(open: (socket: SseSocket) => SseWriter = socket => new SseWriter(socket)) {
  const written: string[] = []
  let unsent = 0
  let isFull = false
  let isDestroyed = false
  const writer = open({
    write: ({ plain }) => {
      written.push(plain.toString())
      if (isFull) unsent += plain.length
      return !isFull
    },
    unsentBytes: () => unsent,
    end: () => {},
    destroy: () => {
      isDestroyed = true
    },
  })
  return {
    ...{ writer, written: () => written, isDestroyed: () => isDestroyed },
    fill: () => {
      isFull = true
    },
    take: (bytes: number) => {
      unsent -= bytes
    },
  }
}
