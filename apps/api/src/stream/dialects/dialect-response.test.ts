import { encodeByteText } from '@rivulet/broker'
import { createTurnComposer, delta, done, type Event, full, start, text, toolRequest, toolResponse } from '@rivulet/protocol'
import type { UiChunk } from '@rivulet/views/ai-sdk'
import { describe, expect, test } from 'vitest'
import { aiSdk } from '../../protocols/ai-sdk/ai-sdk.ts'
import { createAiSdkStream } from '../../protocols/ai-sdk/ai-sdk-stream.ts'
import { encodeEntry, encodeRetry, encodeWireEvent, pieceOf } from '../sse-frame.ts'
import { type Shared, type SseResponse, share } from '../sse-response.ts'
import type { DialectStream } from './dialect.ts'
import { respondIn } from './dialect-response.ts'

const task = '0198c0de-0000-7000-8000-000000000001'
const now = '2026-01-01T00:00:00.000Z'
const ids = { task, turn: 1, attempt: 1, at: 1 }
const started: Event[] = [
  { type: 'turn.started', ...ids, firstIndex: 0 },
  { type: 'message.started', ...ids, index: 0, author: 'agent', content: { type: 'text', text: 'So', format: 'plain' } },
]
const finished: Event = { type: 'turn.finished', ...ids, status: 'completed', stopReason: 'stop' }

test('the cursor stands at the last chunk of an event, and what is no event passes as it is', () => {
  const { spoken, sent } = open()
  const retry = encodeRetry()
  expect(spoken.write(share([pieceOf(retry)]))).toBe(true)
  expect(spoken.write(bytesOf(started))).toBe(true)
  expect(sent()).toBe(
    [
      `${retry}data: {"type":"start","messageId":"${task}:1","messageMetadata":{"task":"${task}","turn":1}}\nid: 1-1`,
      'data: {"type":"text-start","id":"0"}',
      'data: {"type":"text-delta","id":"0","delta":"So"}\nid: 1-2',
      '',
    ].join('\n\n'),
  )
})

test('the end of the turn ends the response, and a later write returns that there is no room', () => {
  const { spoken, sent, calls } = open()
  spoken.write(bytesOf([...started, finished]))
  expect(sent()).toMatch(/data: \{"type":"finish","finishReason":"stop"\}\nid: 1-3\n\ndata: \[DONE\]\n\n$/)
  expect(calls).toEqual(['end'])
  const before = sent()
  expect(spoken.write(share([pieceOf(encodeRetry())]))).toBe(false)
  expect(sent()).toBe(before)
})

test('an end before that of the turn destroys the response', () => {
  const { spoken, calls } = open()
  spoken.write(bytesOf(started))
  spoken.end()
  expect(calls).toEqual(['destroy'])
})

test('an error of a dialect cuts its own viewer alone', () => {
  const broken: DialectStream<UiChunk> = {
    take: () => {
      throw new Error('no')
    },
    hasEnded: () => false,
  }
  const { spoken, sent, calls } = open(broken)
  expect(spoken.write(bytesOf(started))).toBe(false)
  expect([sent(), calls]).toEqual(['', ['Error: no', 'destroy']])
})

test('a full socket is full for the viewer, and an event without chunks is not written', () => {
  const { spoken, sent, setRoom } = open()
  setRoom(false)
  expect(spoken.write(bytesOf([{ type: 'turn.resumed', ...ids, turn: 7, wait: ids.task, status: 'expired' }]))).toBe(true)
  expect(sent()).toBe('')
  expect(spoken.write(bytesOf(started))).toBe(false)
})

test('viewers of one snapshot share what is made of it', () => {
  const turns = [{ id: task, task, number: 1, status: 'running' as const, attempt: 1, queuedAt: now }]
  const messages = [
    { task, index: 0, turn: 1, attempt: 1, author: 'agent' as const, content: text('x'.repeat(1_000_000)), metadata: {}, createdAt: now },
  ].map(message => ({ ...message, status: 'streaming' as const }))
  const about = { id: task, agent: 'a', status: 'running' as const, params: null, metadata: {}, createdAt: now, updatedAt: now }
  const snapshot = { type: 'snapshot', reason: 'join', task: about, turns, messages, messagesFrom: 0 } as const
  const bytes = share([encodeWireEvent('1-2', snapshot)])
  const viewers = Array.from({ length: 3 }, () => open())
  for (const { spoken } of viewers) spoken.write(bytes)
  expect(viewers[0]?.sent().length).toBeGreaterThan(1_000_000)
  expect(new Set(viewers.flatMap(({ shares }) => shares())).size).toBe(1)
})

describe('a slow reader', () => {
  const composer = createTurnComposer({ task, turn: 1, attempt: 1, firstIndex: 0 }, { now: () => 1 })
  const pieces = Array.from({ length: 400 }, (_, place) => delta(1, { type: 'tool_response', text: `${place} `.repeat(8) }))
  const said = [full(0, toolRequest('c', 'tail')), start(1, toolResponse('c', 'tail')), ...pieces, done(1)]
  const events: Event[] = [{ type: 'turn.started', ...ids, firstIndex: 0 }, ...said.flatMap(update => composer.compose(update)), finished]

  test('holds what the viewer wrote, and not its translation', () => {
    const { spoken, sent, setRoom } = open()
    setRoom(false)
    expect(spoken.write(bytesOf(events))).toBe(false)
    // All of it is more than ten times as much: each chunk of a tool's response repeats what came before it.
    expect(sent().length).toBeLessThan(128 * 1024)
    expect(spoken.write(share([pieceOf(encodeRetry())]))).toBe(false)
    let writes = 1
    for (; !sent().endsWith('data: [DONE]\n\n'); writes += 1) expect(spoken.drained()).toBe(false)
    expect(writes).toBeGreaterThan(10)
    const free = open()
    expect(free.spoken.write(bytesOf(events))).toBe(true)
    expect(sent()).toBe(free.sent())
  })

  test('gets the end that waits for it, and is ended only then', () => {
    const { spoken, sent, calls, setRoom } = open()
    setRoom(false)
    spoken.write(bytesOf(events.slice(0, -1)))
    spoken.write(share([encodeWireEvent('1-999', { type: 'end', task, status: 'completed' })]))
    spoken.end()
    expect(calls).toEqual([])
    setRoom(true)
    spoken.drained()
    expect(sent()).toMatch(/"type":"finish"[^\n]*\nid: [^\n]*\n\ndata: \[DONE\]\n\n$/)
    expect(calls).toEqual(['end'])
  })

  test('is cut when the API stops, once it has what waits for it', () => {
    const { spoken, calls, setRoom } = open()
    setRoom(false)
    spoken.write(bytesOf(events.slice(0, -1)))
    spoken.end()
    expect(calls).toEqual([])
    setRoom(true)
    spoken.drained()
    expect(calls).toEqual(['destroy'])
  })
})

function bytesOf(events: Event[]): Shared {
  const frames = events.map((event, place) => encodeEntry({ cursor: `1-${place + 1}`, json: encodeByteText(JSON.stringify(event)) }, event))
  return share(frames)
}

function open(stream: DialectStream<UiChunk> = createAiSdkStream({ task })) {
  const written: Buffer[] = []
  const shares: Shared[] = []
  const calls: string[] = []
  let hasRoom = true
  const response: SseResponse = {
    write(bytes) {
      written.push(bytes.plain)
      shares.push(bytes)
      return hasRoom
    },
    end: () => calls.push('end'),
    destroy: () => calls.push('destroy'),
  }
  return {
    spoken: respondIn(aiSdk, stream, response, error => calls.push(String(error))),
    sent: () => Buffer.concat(written).toString(),
    shares: () => shares,
    calls,
    setRoom: (room: boolean) => {
      hasRoom = room
    },
  }
}
