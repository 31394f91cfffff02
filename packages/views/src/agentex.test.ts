/** Task messages as Agentex streams them, and the result of a client that follows its rules. */
import {
  data,
  delta,
  done,
  type Event,
  emptyState,
  full,
  type Message,
  media,
  reasoning,
  start,
  text,
  toolRequest,
  toolResponse,
  type Update,
} from '@rivulet/protocol'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { task, turnOf, updatesToEvents } from '../test/task-log.ts'
import { createTaskMessageUpdates, type TaskMessageContent, type TaskMessageUpdate } from './agentex.ts'

describe('the updates', () => {
  test('of a text that is streamed: start, a delta for each, done', () => {
    expect(updatesOf(delta(0, 'Hello'), delta(0, ' world'), done(0))).toEqual([
      { type: 'start', index: 0, content: { type: 'text', author: 'agent', content: '', format: 'plain' } },
      { type: 'delta', index: 0, delta: { type: 'text', text_delta: 'Hello' } },
      { type: 'delta', index: 0, delta: { type: 'text', text_delta: ' world' } },
      { type: 'done', index: 0 },
    ])
  })

  test('of a message that the agent did not close: the end of the turn closes it', () => {
    const log = turnOf({ updates: [delta(0, 'a'), delta(1, 'b')], end: { status: 'completed', stopReason: 'stop' } })
    expect(kindsOf(log)).toEqual(['start 0', 'delta 0', 'start 1', 'delta 1', 'done 0', 'done 1'])
  })

  test('of one that is replaced: full is the last of its index', () => {
    const updates = updatesOf(delta(0, 'raw'), full(0, 'raw\n\n## Sources'), delta(0, 'late'), done(0))
    expect(updates.slice(2)).toEqual([
      { type: 'full', index: 0, content: { type: 'text', author: 'agent', content: 'raw\n\n## Sources', format: 'plain' } },
    ])
  })

  test('of calls and results that arrive whole: full alone', () => {
    expect(updatesOf(full(0, toolRequest('c', 'read', { path: 'f' })), full(1, toolResponse('c', 'read', 'contents')))).toEqual([
      {
        type: 'full',
        index: 0,
        content: { type: 'tool_request', author: 'agent', tool_call_id: 'c', name: 'read', arguments: { path: 'f' } },
      },
      { type: 'full', index: 1, content: { type: 'tool_response', author: 'agent', tool_call_id: 'c', name: 'read', content: 'contents' } },
    ])
  })

  test('of every kind of delta', () => {
    const deltas = updatesOf(
      ...[start(0, toolRequest('c', 'read')), delta(0, { type: 'tool_request', text: '{}' })],
      ...[start(1, toolResponse('c', 'read')), delta(1, { type: 'tool_response', text: '50 %' })],
      ...[delta(2, { type: 'data_json', text: '[1]' }), start(3, reasoning())],
      ...[delta(3, { type: 'reasoning_summary', index: 1, text: 'So' }), delta(3, { type: 'reasoning_content', index: 0, text: 'Hm' })],
    ).flatMap(update => (update.type === 'delta' ? [update.delta] : []))
    expect(deltas).toEqual([
      { type: 'tool_request', tool_call_id: 'c', name: 'read', arguments_delta: '{}' },
      { type: 'tool_response', tool_call_id: 'c', name: 'read', content_delta: '50 %' },
      { type: 'data', data_delta: '[1]' },
      { type: 'reasoning_summary', summary_index: 1, summary_delta: 'So' },
      { type: 'reasoning_content', content_index: 0, content_delta: 'Hm' },
    ])
  })

  test('of content without an Agentex delta: full at the close', () => {
    const updates = updatesOf(
      ...[start(0, data()), delta(0, { type: 'data', value: { a: 1 } }), delta(0, { type: 'data', value: { b: 2 } }), done(0)],
      ...[start(1, media('image/png')), delta(1, { type: 'media', bytes: 'AQID' }), done(1)],
    )
    expect(updates.filter(({ type }) => type !== 'start')).toEqual([
      { type: 'full', index: 0, content: { type: 'data', author: 'agent', data: { b: 2 } } },
      { type: 'full', index: 1, content: { type: 'data', author: 'agent', data: { mime_type: 'image/png', data: 'AQID', url: null } } },
    ])
  })

  test('of an input: a complete message of the user', () => {
    const [event] = turnOf({ firstIndex: 1 }) as [Event & { type: 'turn.started' }]
    const input: Message = { ...asked, task, index: 0, turn: 1, attempt: 1, content: text('Hi') }
    expect(createTaskMessageUpdates()({ ...event, input })).toMatchObject([
      {
        type: 'full',
        index: 0,
        content: { type: 'text', author: 'user', content: 'Hi' },
        parent_task_message: { streaming_status: 'DONE' },
      },
    ])
  })

  test('have four types', () => {
    expectTypeOf<TaskMessageUpdate['type']>().toEqualTypeOf<'start' | 'delta' | 'full' | 'done'>()
    expect(updatesToEvents({ type: 'custom', name: 'note', data: 1 }).flatMap(createTaskMessageUpdates(emptyState))).toEqual([])
  })
})

test('a handoff is a full text without an index, and takes no index from a message', () => {
  const handoff: Update = { type: 'custom', name: 'agent.handoff', data: { from: 'Clerk', to: 'Poet' } }
  const updates = updatesOf(delta(0, 'One moment.'), done(0), handoff, { ...handoff, data: { from: 1 } }, delta(1, 'A poem.'), done(1))
  expect(updates.map(({ type, index }) => [type, index])).toEqual([
    ...[0, 0, 0].map((index, i) => [['start', 'delta', 'done'][i], index]),
    ['full', null],
    ...[1, 1, 1].map((index, i) => [['start', 'delta', 'done'][i], index]),
  ])
  expect(updates[3]).toMatchObject({ content: { type: 'text', author: 'agent', content: 'Handoff from Clerk to Poet' } })
})

describe('a client', () => {
  test('finds the message of each update in it', () => {
    const updates = updatesToEvents(start(0, text('a')), delta(0, 'b'), done(0)).flatMap(createTaskMessageUpdates())
    for (const update of updates) {
      expect(update.parent_task_message).toMatchObject({
        id: `${task}-0`,
        task_id: task,
        content: { content: 'a' },
        streaming_status: 'IN_PROGRESS',
      })
    }
  })

  test('that begins with the start and adds the deltas of each index has the stored messages', () => {
    const updates = [start(0, text('It ')), delta(1, 'other '), delta(0, 'is '), delta(1, 'words'), delta(0, 'so.'), done(1), done(0)]
    expect(shown(updatesToEvents(...updates).flatMap(createTaskMessageUpdates()))).toEqual(['It is so.', 'other words'])
  })

  test('starts an index again when the turn is retried', () => {
    const log = [...turnOf({ updates: [delta(0, 'first')] }), ...turnOf({ attempt: 2, updates: [delta(0, 'second'), done(0)] })]
    expect(kindsOf(log)).toEqual(['start 0', 'delta 0', 'start 0', 'delta 0', 'done 0'])
    expect(shown(log.flatMap(createTaskMessageUpdates()))).toEqual(['second'])
  })
})

const asked = { author: 'user', status: 'complete', metadata: {}, createdAt: '2026-01-01T00:00:00.000Z' } as const

/** The updates without their parent message. */
function updatesOf(...updates: Update[]) {
  return updatesToEvents(...updates)
    .flatMap(createTaskMessageUpdates())
    .map(({ parent_task_message: _, ...update }) => update as WithoutParent)
}

type WithoutParent = TaskMessageUpdate extends infer U ? (U extends TaskMessageUpdate ? Omit<U, 'parent_task_message'> : never) : never

function kindsOf(log: Event[]): string[] {
  return log.flatMap(createTaskMessageUpdates()).map(({ type, index }) => `${type} ${index}`)
}

/** The texts shown by a client that follows Agentex's rules. */
function shown(updates: TaskMessageUpdate[]): string[] {
  const texts: string[] = []
  const wordsOf = (content: TaskMessageContent) => (content.type === 'text' ? content.content : '')
  for (const update of updates) {
    if ((update.type === 'start' || update.type === 'full') && update.index !== null) texts[update.index] = wordsOf(update.content)
    if (update.type === 'delta' && update.delta.type === 'text') texts[update.index] += update.delta.text_delta
  }
  return texts
}
