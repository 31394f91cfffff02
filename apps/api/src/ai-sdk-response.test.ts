import type { Event } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { speakAiSdk } from './ai-sdk-response.ts'
import { createAiSdkStream } from './ai-sdk-stream.ts'
import { encodeEntry, heartbeat } from './sse-frame.ts'
import { type Shared, type SseResponse, share } from './sse-response.ts'

const task = '0198c0de-0000-7000-8000-000000000001'
const ids = { task, turn: 1, attempt: 1, at: 1 }
const started: Event[] = [
  { type: 'turn.started', ...ids, firstIndex: 0 },
  { type: 'message.started', ...ids, index: 0, author: 'agent', content: { type: 'text', text: 'So', format: 'plain' } },
]
const finished: Event = { type: 'turn.finished', ...ids, status: 'completed', stopReason: 'stop' }

test('the cursor stands at the last chunk of an event, and what is no event passes as it is', () => {
  const { spoken, sent } = open()
  expect(spoken.write(share(heartbeat))).toBe(true)
  expect(spoken.write(bytesOf(started))).toBe(true)
  expect(sent()).toBe(
    [
      ': hb',
      `id: 1-1\ndata: {"type":"start","messageId":"${task}:1","messageMetadata":{"task":"${task}","turn":1}}`,
      'data: {"type":"text-start","id":"0"}',
      'id: 1-2\ndata: {"type":"text-delta","id":"0","delta":"So"}',
      '',
    ].join('\n\n'),
  )
})

test('the end of the turn ends the response, and whoever writes on is told that there is no room', () => {
  const { spoken, sent, calls } = open()
  spoken.write(bytesOf([...started, finished]))
  expect(sent()).toMatch(/id: 1-3\ndata: \{"type":"finish","finishReason":"stop"\}\n\ndata: \[DONE\]\n\n$/)
  expect(calls).toEqual(['end'])
  const before = sent()
  expect(spoken.write(share(heartbeat))).toBe(false)
  expect(sent()).toBe(before)
})

test('an end before that of the turn breaks the connection off', () => {
  const { spoken, calls } = open()
  spoken.write(bytesOf(started))
  spoken.end()
  expect(calls).toEqual(['destroy'])
})

test('a socket that is full is full for the viewer, and nothing is written where nothing is to be said', () => {
  const { spoken, sent } = open(false)
  expect(spoken.write(bytesOf([{ type: 'turn.waiting', ...ids, turn: 7, request: null }]))).toBe(true)
  expect(sent()).toBe('')
  expect(spoken.write(bytesOf(started))).toBe(false)
})

function bytesOf(events: Event[]): Shared {
  const frames = events.map((event, place) => encodeEntry({ cursor: `1-${place + 1}`, json: JSON.stringify(event) }, event).bytes)
  return share(Buffer.concat(frames))
}

function open(hasRoom = true): { spoken: SseResponse; sent: () => string; calls: string[] } {
  const written: Buffer[] = []
  const calls: string[] = []
  const response: SseResponse = {
    write(bytes) {
      written.push(bytes.plain)
      return hasRoom
    },
    unsentBytes: () => 0,
    end: () => calls.push('end'),
    destroy: () => calls.push('destroy'),
  }
  return { spoken: speakAiSdk(response, createAiSdkStream({ task })), sent: () => Buffer.concat(written).toString(), calls }
}
