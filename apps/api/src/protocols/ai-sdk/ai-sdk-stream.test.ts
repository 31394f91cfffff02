import {
  type Content,
  type Cursor,
  createTurnComposer,
  custom,
  data,
  delta,
  done,
  type Event,
  formatCursor,
  full,
  media,
  reasoning,
  start,
  text,
  toolRequest,
  toolResponse,
  type Update,
  type Wait,
} from '@rivulet/protocol'
import type { UiChunk } from '@rivulet/views/ai-sdk'
import { describe, expect, test } from 'vitest'
import { type Entry, logOf, snapshotOf, task } from '../../../../../test/support/logs/log-entries.ts'
import { pastOf, readChunks } from '../../../test/ui-reader.ts'
import { createAiSdkStream, type Past } from './ai-sdk-stream.ts'

const ids = { task, turn: 1, attempt: 1, at: 1 }

const everyKind: Update[] = [
  start(0, reasoning()),
  delta(0, { type: 'reasoning_summary', index: 1, text: 'First' }),
  delta(0, { type: 'reasoning_content', index: 0, text: 'Hm' }),
  delta(0, { type: 'reasoning_content', index: 0, text: '.' }),
  done(0),
  delta(1, { type: 'text', text: 'Let me ' }),
  delta(1, { type: 'text', text: 'see.' }),
  delta(1, { type: 'metadata', metadata: { citations: [{ url: 'https://a.example', title: 'A' }] } }),
  done(1),
  start(2, toolRequest('c1', 'weather')),
  delta(2, { type: 'tool_request', text: '{"city":' }),
  delta(2, { type: 'tool_request', text: '"Oslo"}' }),
  done(2),
  start(3, toolResponse('c1', 'weather')),
  delta(3, { type: 'data', value: 'asking' }),
  delta(3, { type: 'data', value: { rain: true } }),
  done(3),
  full(4, toolResponse('c9', 'late', 'no', true)),
  start(5, data()),
  delta(5, { type: 'data_json', text: '{"a":' }),
  delta(5, { type: 'data_json', text: '1}' }),
  done(5),
  start(6, media('image/png')),
  delta(6, { type: 'media', bytes: 'AAEC' }),
  done(6),
  custom('progress', 3),
  full(7, 'All said.'),
]

const everyPart = [
  { type: 'reasoning', text: 'First', state: 'done' },
  { type: 'reasoning', text: 'Hm.', state: 'done' },
  { type: 'text', text: 'Let me see.', state: 'done' },
  { type: 'source-url', url: 'https://a.example' },
  { type: 'dynamic-tool', toolCallId: 'c1', toolName: 'weather', input: { city: 'Oslo' }, output: { rain: true } },
  { type: 'dynamic-tool', toolCallId: 'c9', toolName: 'late', input: {}, errorText: 'no' },
  { type: 'data-json', data: { a: 1 } },
  { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AAEC' },
  { type: 'text', text: 'All said.', state: 'done' },
]

test('every kind of content has its chunks, and they add up to the message', () => {
  const chunks = listen(turnOf(everyKind))
  expect(chunks[0]).toEqual({ type: 'start', messageId: `${task}:1`, messageMetadata: { task, turn: 1 } })
  expect(chunks.map(({ type }) => type)).not.toContain('reset-step')
  expect(chunks).toContainEqual({ type: 'data-notice', data: { name: 'progress', data: 3 }, transient: true })
  expect(readChunks(chunks)).toEqual(everyPart.map(part => expect.objectContaining(part)))
  expect(chunks.at(-1)).toEqual({ type: 'finish', finishReason: 'stop', messageMetadata: { usage: { outputTokens: 7 } } })
})

test('a client that joins anywhere gets the message so far, and the rest', () => {
  const log = turnOf(everyKind)
  for (let joinsAt = 1; joinsAt <= log.length; joinsAt += 1) {
    const stream = createAiSdkStream({ task })
    const joined = stream.take(log[joinsAt - 1]?.cursor ?? '0-0', snapshotOf(log.slice(0, joinsAt), 'join'))
    const rest = log.slice(joinsAt).flatMap(({ cursor, event }) => stream.take(cursor, event))
    expect(joined[0]).toMatchObject({ type: 'start', messageId: `${task}:1` })
    expect(readChunks([...joined, ...rest])).toEqual(everyPart.map(part => expect.objectContaining(part)))
    expect(stream.hasEnded()).toBe(true)
  }
})

test('a client that resumes anywhere, also between two chunks of one event, ends with the same message', () => {
  const log = turnOf(everyKind)
  const whole = framesOf(log, {})
  for (let cutAt = 1; cutAt < whole.length; cutAt += 1) {
    const got = whole.slice(0, cutAt)
    const cursor = got.findLast(frame => frame.id)?.id
    if (!cursor) continue
    const place = log.findIndex(entry => entry.cursor === cursor)
    const more = framesOf(log.slice(place + 1), { past: pastOf(log.slice(0, place + 1)) })
    expect(readChunks([...got, ...more].map(({ chunk }) => chunk))).toEqual(everyPart.map(part => expect.objectContaining(part)))
    expect(more.map(({ chunk }) => chunk.type)).not.toContain('start')
  }
})

describe('content that is no longer true', () => {
  test('a new attempt empties the message', () => {
    const first = turnOf([delta(0, 'Wrong')]).slice(0, -1)
    const second = turnOf([delta(0, 'Right')], { epoch: 2, attempt: 2 }).slice(1)
    const chunks = listen([...first, ...second])
    expect(chunks.filter(({ type }) => type === 'reset-step')).toHaveLength(1)
    expect(readChunks(chunks)).toMatchObject([{ type: 'text', text: 'Right' }])
  })

  test.each<[string, Content, Content, boolean]>([
    ['a text that goes on', text('So'), text('So it is.'), false],
    ['another text', text('So'), text('No.'), true],
    ['another kind', text('So'), data({ a: 1 }), true],
    ['another value', data({ a: 1 }), data({ a: 2 }), false],
    ['other arguments', toolRequest('c', 'now'), toolRequest('c', 'now', { utc: true }), false],
    ['another call', toolRequest('c', 'now'), toolRequest('d', 'then'), true],
  ])('%s in place of a message', (_, before, after, resets) => {
    const log = turnOf([delta(0, 'Before.'), start(1, before), full(1, after)])
    const chunks = listen(log)
    expect(chunks.some(({ type }) => type === 'reset-step')).toBe(resets)
    expect(readChunks(chunks)).toEqual(readChunks(listen(turnOf([delta(0, 'Before.'), full(1, after)]))))
  })

  test('a client that missed events gets all of the message again', () => {
    const log = turnOf(everyKind)
    const stream = createAiSdkStream({ task })
    const head = log.slice(0, 8).flatMap(({ cursor, event }) => stream.take(cursor, event))
    const gap = stream.take(log[14]?.cursor ?? '0-0', snapshotOf(log.slice(0, 15), 'slow'))
    const rest = log.slice(15).flatMap(({ cursor, event }) => stream.take(cursor, event))
    expect(readChunks([...head, ...gap, ...rest])).toEqual(everyPart.map(part => expect.objectContaining(part)))
  })
})

describe('calls', () => {
  const [ask, response] = [toolRequest('c', 'now'), toolResponse('c', 'now', 'noon')]

  test.each<[string, Update[], object[]]>([
    [
      'that use an id again are two',
      [full(0, ask), full(1, response), full(2, ask), full(3, toolResponse('c', 'now', 'one'))],
      [
        { toolCallId: 'c', output: 'noon' },
        { toolCallId: 'c-2', output: 'one' },
      ],
    ],
    [
      'that use it side by side are answered in order',
      [start(0, ask), start(1, ask), full(2, response), full(3, toolResponse('c', 'now', 'one'))],
      [
        { toolCallId: 'c', output: 'noon' },
        { toolCallId: 'c-1', output: 'one' },
      ],
    ],
    [
      'without an id have one, and their responses know it',
      [full(0, toolRequest('', 'now')), full(1, toolResponse('', 'now', 'noon'))],
      [{ toolCallId: 'call-0', output: 'noon' }],
    ],
    [
      'keep their ids and names, whatever those are',
      [full(0, toolRequest('__proto__', 'x\n\ndata: [DONE]')), full(1, toolResponse('__proto__', 'constructor', 'noon'))],
      [{ toolCallId: '__proto__', toolName: 'x\n\ndata: [DONE]', output: 'noon' }],
    ],
  ])('%s', (_, updates, parts) => {
    const log = turnOf(updates)
    expect(readChunks(listen(log))).toMatchObject(parts)
    expect(readChunks(createAiSdkStream({ task }).take('1-99', snapshotOf(log, 'join')))).toMatchObject(parts)
  })
})

describe('which turn', () => {
  const two = [...turnOf([delta(0, 'one')]), ...turnOf([delta(0, 'two')], { epoch: 2, turn: 2, firstIndex: 1 })]

  test('the first from the start on; a client that then resumes gets the next as another message', () => {
    const stream = createAiSdkStream({ task })
    expect(readChunks(two.flatMap(({ cursor, event }) => stream.take(cursor, event)))).toMatchObject([{ text: 'one' }])
    const place = two.findIndex(({ event }) => event.type === 'turn.finished') + 1
    const next = framesOf(two.slice(place), { past: pastOf(two.slice(0, place)) }).map(({ chunk }) => chunk)
    expect(next[0]).toMatchObject({ type: 'start', messageId: `${task}:2` })
    expect(readChunks(next)).toMatchObject([{ text: 'two' }])
  })

  test('the next one begins anew also for a client that has it as queued before the end', () => {
    const [queued, ...second] = turnOf([full(0, 'two')], { epoch: 2, turn: 2, firstIndex: 1 })
    const first = turnOf([delta(0, 'one')])
    const events = [...first.slice(0, 3), queued, ...first.slice(3), ...second].flatMap(entry => entry?.event ?? [])
    const log = logOf(events)
    const place = log.findIndex(({ event }) => event.type === 'turn.finished') + 1
    const next = framesOf(log.slice(place), { past: pastOf(log.slice(0, place)) }).map(({ chunk }) => chunk)
    expect(next.filter(({ type }) => type === 'start')).toMatchObject([{ messageId: `${task}:2` }])
    expect(readChunks(next)).toMatchObject([{ text: 'two' }])
  })

  test('the one that was asked for', () => {
    const stream = createAiSdkStream({ task, turnNumber: 2 })
    expect(readChunks(two.flatMap(({ cursor, event }) => stream.take(cursor, event)))).toMatchObject([{ text: 'two' }])
  })

  test('the last when all have ended', () => {
    const stream = createAiSdkStream({ task })
    const chunks = stream.take('2-9', snapshotOf(two, 'join'))
    expect(readChunks(chunks)).toMatchObject([{ text: 'two' }])
    expect(stream.hasEnded()).toBe(true)
  })
})

describe('a turn that waits', () => {
  const call = turnOf([full(0, toolRequest('c', 'pay', { amount: 5 }))]).slice(0, -1)
  const wait: Wait = {
    ...{ id: 'w', task, turn: 1, agent: 'a', name: 'pay', kind: 'approval', title: 'Pay?', callId: 'c', actions: ['accept', 'decline'] },
    ...{ metadata: {}, status: 'open', createdAt: '2026-01-01T00:00:00.000Z', expiresAt: '2026-01-02T00:00:00.000Z' },
  }
  const asking = (asked: Wait, more: { more?: true } = {}): Entry => ({
    ...{ cursor: '1-90', event: { type: 'turn.waiting', ...ids, wait: asked, ...more } },
  })
  const request = { type: 'tool-approval-request', approvalId: 'w', toolCallId: 'c', reason: 'Pay?' }

  test('for the approval of a call asks the page, and ends the stream when no other question follows', () => {
    expect(listen([...call, asking(wait)]).slice(-2)).toEqual([request, { type: 'finish', finishReason: 'tool-calls' }])
    expect(listen([...call, asking(wait, { more: true })]).at(-1)).toEqual(request)
    const joined = createAiSdkStream({ task }).take('1-90', snapshotOf([...call, asking(wait)], 'join'))
    expect(joined.slice(-2)).toEqual([request, { type: 'finish', finishReason: 'tool-calls' }])
  })

  test('for anything else keeps the stream open, and sends the question as data', () => {
    const form: Wait = { ...wait, kind: 'form', callId: undefined }
    expect(listen([...call, asking(form)]).at(-1)).toEqual({ type: 'data-wait', data: form, transient: true })
  })

  test('goes on after the response with the whole message, and a declined call is denied', () => {
    const answer = { action: 'decline', comment: 'no', at: '2026-01-01T00:00:01.000Z' } as const
    const resumed: Entry = { cursor: '1-91', event: { type: 'turn.resumed', ...ids, wait: 'w', status: 'answered', answer } }
    const stream = createAiSdkStream({ task, isContinued: true })
    const joined = stream.take('1-91', snapshotOf([...call, asking(wait), resumed], 'join'))
    const response = { type: 'tool-approval-response', approvalId: 'w', approved: false, reason: 'no' }
    expect(joined.map(({ type }) => type)).toEqual(['start', 'reset-step', 'tool-input-available', request.type, response.type])
    expect(joined.at(-1)).toEqual(response)
    const denied: Event = { type: 'message.replaced', ...ids, index: 1, content: toolResponse('c', 'pay', 'Declined: no', true) }
    expect(stream.take('1-92', denied)).toEqual([{ type: 'tool-output-denied', toolCallId: 'c' }])
  })
})

test.each([
  ['failed', { type: 'error', errorText: 'no luck' }],
  ['canceled', { type: 'abort', reason: 'no luck' }],
] as const)('a turn that %s says so', (status, chunk) => {
  const end: Event = { type: 'turn.finished', ...ids, status, stopReason: 'error', error: { code: 'agent_error', message: 'no luck' } }
  const chunks = listen([...turnOf([delta(0, 'So')]).slice(0, -1), { cursor: '1-99', event: end }])
  expect(chunks.at(-1)).toEqual(chunk)
})

/** A turn's log, from the queue to its end. */
function turnOf(updates: Update[], { epoch = 1, turn: turnNumber = 1, attempt = 1, firstIndex = 0 } = {}): Entry[] {
  const stamp = { ...ids, turn: turnNumber, attempt }
  const composer = createTurnComposer({ ...stamp, firstIndex }, { now: () => 1 })
  const events: Event[] = [
    { type: 'turn.queued', ...stamp, attempt: 0 },
    { type: 'turn.started', ...stamp, firstIndex },
    ...updates.flatMap(update => composer.compose(update)),
    ...composer.closeAll('complete'),
    { type: 'turn.finished', ...stamp, status: 'completed', stopReason: 'stop', usage: { outputTokens: 7 } },
  ]
  return events.map((event, place) => ({ cursor: formatCursor(epoch, place + 1), event }))
}

function listen(log: Entry[]): UiChunk[] {
  return framesOf(log, {}).map(({ chunk }) => chunk)
}

/** As on the wire: the cursor stands at the last chunk of an event. */
function framesOf(log: Entry[], { past }: { past?: Past }): { id: Cursor | null; chunk: UiChunk }[] {
  const stream = createAiSdkStream({ task, past })
  return log.flatMap(({ cursor, event }) => {
    const chunks = stream.take(cursor, event)
    return chunks.map((chunk, place) => ({ id: place === chunks.length - 1 ? cursor : null, chunk }))
  })
}
