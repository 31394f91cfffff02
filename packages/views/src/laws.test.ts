/** Laws of every view, for any updates of an agent and any end of its turn. */
import { delta, done, type Event, full, isMessageEvent, type Message, reasoning, start, toolRequest } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { overriddenTurn, type RandomTurn, randomTurn } from '../test/random-turn.ts'
import { task, updatesToEvents } from '../test/task-log.ts'
import { createTaskMessageUpdates, type TaskMessageContent, taskMessageOf } from './agentex.ts'
import { createDeltas, itemsOf } from './agentkit.ts'
import { type AgentEvent, createAgentEvents } from './coding-agent.ts'
import type { View } from './follower.ts'
import { createStreamEvents, StreamAccumulator } from './mini-claw-code/mini-claw-code.ts'
import { spansOf } from './spans.ts'

const always = (law: (turn: RandomTurn) => void, turns = randomTurn) => fc.assert(fc.property(turns, law), { numRuns: 200 })

test('coding agent: each call and each execution in order, every execution finished once', () => {
  const order = ['tool_call_started', 'tool_call_arguments_delta', 'tool_call_ready']
  always(({ events }) => {
    const emitted = events.flatMap(createAgentEvents())
    const executions = emitted.filter(event => event.type.startsWith('tool_execution'))
    for (const id of new Set(executions.flatMap(event => ('id' in event ? [event.id] : [])))) {
      const types = executions.flatMap(event => ('id' in event && event.id === id ? [event.type] : []))
      expect([types[0], types.at(-1)]).toEqual(['tool_execution_started', 'tool_execution_finished'])
      expect(types.slice(1, -1).every(type => type === 'tool_execution_update')).toBe(true)
    }
    for (const id of new Set(emitted.flatMap(event => (event.type === 'tool_call_started' ? [event.id] : [])))) {
      const types = emitted.flatMap(event =>
        'id' in event && event.id === id && order.includes(event.type) ? [order.indexOf(event.type)] : [],
      )
      expect(types).toEqual([...types].sort())
      expect(types.filter(place => place !== 1).length).toBeLessThanOrEqual(2)
    }
  })
})

test('coding agent: argument deltas are inputs; the last event is turn_finished, and aborted is emitted once', () => {
  always(({ events, status }) => {
    const emitted = events.flatMap(createAgentEvents())
    const finished = emitted.flatMap(event => (event.type === 'turn_finished' ? [event.message] : []))
    for (const { id, input } of finished.flatMap(({ toolCalls }) => toolCalls)) {
      const json = emitted.map(event => (event.type === 'tool_call_arguments_delta' && event.id === id ? event.delta : '')).join('')
      expect(json.trim() === '' ? {} : JSON.parse(json)).toEqual(input)
    }
    expect(emitted.at(-1)?.type).toBe('turn_finished')
    expect(emitted.filter(({ type }) => type === 'aborted')).toHaveLength(status === 'canceled' ? 1 : 0)
  })
})

test('coding agent: the deltas are the text of each response in order, also of texts that interleave or are replaced', () => {
  always(({ events, messages }) => {
    const emitted = events.flatMap(createAgentEvents())
    const finished = emitted.flatMap(event => (event.type === 'turn_finished' ? [event.message.text] : []))
    expect(textsOf(emitted)).toEqual(finished)
    expect(finished.join('')).toBe(textOf(messages))
  }, overriddenTurn)
})

test('mini-claw-code: the accumulated turns have the texts and calls of the messages', () => {
  always(({ events, messages }) => {
    const emitted = events.flatMap(createStreamEvents())
    const turns = collected(emitted)
    expect(
      turns
        .map(({ text }) => text ?? '')
        .join('')
        .split('')
        .sort(),
    ).toEqual(textOf(messages).split('').sort())
    const calls = new Map(turns.flatMap(({ tool_calls }) => tool_calls).map(call => [call.id, call.arguments]))
    const complete = messages.flatMap(({ content, status }) => (content.type === 'tool_request' && status === 'complete' ? [content] : []))
    expect(complete.map(({ callId }) => calls.get(callId))).toEqual(complete.map(({ arguments: args }) => args))
    if (emitted.length > 0) expect(emitted.at(-1)).toEqual({ type: 'Done' })
  })
})

test('mini-claw-code: texts that do not interleave are accumulated in the order of their messages', () => {
  always(({ events, messages }) => {
    const turns = collected(inOrderOfMessages(events).flatMap(createStreamEvents()))
    expect(turns.map(({ text }) => text ?? '').join('')).toBe(textOf(messages))
  })
})

test('agentkit: the committed parts are the stored ones, and texts begin with the sum of their deltas', () => {
  always(({ events, messages }) => {
    const deltas = events.flatMap(createDeltas())
    const committed = deltas.flatMap(each => (each.type === 'CommitPart' ? [each.part] : []))
    const stored = itemsOf(messages).flatMap(({ parts }) => parts)
    expect(committed.map(part => JSON.stringify(part)).sort()).toEqual(stored.map(part => JSON.stringify(part)).sort())
    const begun = deltas.flatMap(each => (each.type === 'BeginPart' ? [each.part_id] : []))
    expect(begun).toEqual(messages.map(({ index }) => `p${index}`))
    for (const { index, content } of messages) {
      const sum = deltas.map(each => (each.type === 'AppendText' && each.part_id === `p${index}` ? each.chunk : '')).join('')
      if (content.type === 'text') expect(content.text.startsWith(sum) && sum !== '').toBe(true)
    }
  })
})

test('agentex: a client that follows the rules has the stored messages, of every type', () => {
  always(({ events, messages }) => {
    const shown = new Map<number, { content: TaskMessageContent; json: string }>()
    for (const update of events.flatMap(createTaskMessageUpdates())) {
      if (update.index === null) continue
      if (update.type === 'start' || update.type === 'full') shown.set(update.index, { content: update.content, json: '' })
      if (update.type === 'delta') {
        const { content, json } = shown.get(update.index) ?? {}
        if (!content || json === undefined) throw new Error('A delta before its start')
        shown.set(update.index, extended(content, json, update.delta))
      }
    }
    const whole = messages.filter(({ status }) => status === 'complete')
    expect(whole.map(({ index }) => closed(shown.get(index)))).toEqual(whole.map(message => taskMessageOf(message).content))
  })
})

test.each([
  ['coding agent', createAgentEvents],
  ['mini-claw-code', createStreamEvents],
  ['agentkit', createDeltas],
  ['agentex', createTaskMessageUpdates],
])('%s: events of a faulty producer at closed messages are ignored', (_, createView: () => (event: Event) => object[]) => {
  always(({ events }) => {
    const late = [...events.slice(0, -1), ...events.filter(({ type }) => type.startsWith('message.')), ...events.slice(-1)]
    expect(late.flatMap(createView())).toEqual(events.flatMap(createView()))
  })
})

test.each([
  ['coding agent', createAgentEvents],
  ['mini-claw-code', createStreamEvents],
  ['agentkit', createDeltas],
  ['agentex', createTaskMessageUpdates],
])('%s: the updates of a model without a task give what their events in a task give', (_, createView: () => View<object>) => {
  const updates = [
    start(0, reasoning()),
    delta(0, { type: 'reasoning_content', index: 0, text: 'Hm.' }),
    done(0),
    delta(1, 'Let me '),
    delta(1, 'look.'),
    done(1),
    full(2, toolRequest('c1', 'look', { at: 'it' })),
    done(2, { stopReason: 'tool_use' }),
  ]
  const emitted = updates.flatMap(createView())
  expect(emitted.length).toBeGreaterThan(3)
  expect(withoutIds(emitted)).toEqual(withoutIds(updatesToEvents(...updates).flatMap(createView())))
})

test('spans: each is closed, and none begins before its parent or ends after it', () => {
  always(({ events }) => {
    const spans = spansOf(events.map((event, i) => ({ ...event, at: i })))
    const byId = new Map(spans.map(span => [span.id, span]))
    expect(byId.size).toBe(spans.length)
    for (const { parentId, startedAt, endedAt } of spans) {
      const parent = parentId === null ? null : byId.get(parentId)
      expect(startedAt).toBeLessThanOrEqual(endedAt)
      if (parent) expect(startedAt >= parent.startedAt && endedAt <= parent.endedAt).toBe(true)
    }
  })
})

/** Without the task's id and the times, which updates without a task do not have. */
function withoutIds(emitted: object[]): unknown {
  return JSON.parse(
    JSON.stringify(emitted)
      .replaceAll(task, '')
      .replaceAll(/"\d{4}-\d\d-\d\dT[^"]*"/g, '""'),
  )
}

/** The text of each response, as an interface shows it: deltas are appended, and a replacement is the whole text so far. */
function textsOf(events: AgentEvent[]): string[] {
  const texts: string[] = []
  let shown = ''
  for (const event of events) {
    if (event.type === 'assistant_text_delta') shown += event.text
    if (event.type === 'assistant_text_replaced') shown = event.text
    if (event.type !== 'turn_finished') continue
    texts.push(shown)
    shown = ''
  }
  return texts
}

function textOf(messages: Message[]): string {
  return messages.map(({ content }) => (content.type === 'text' ? content.text : '')).join('')
}

/** The same turn, each message complete before the next one begins. */
function inOrderOfMessages(events: Event[]): Event[] {
  const place = (event: Event) => (isMessageEvent(event) ? event.index : event.type === 'turn.finished' ? Number.POSITIVE_INFINITY : -1)
  return events.toSorted((a, b) => (place(a) === place(b) ? 0 : place(a) - place(b)))
}

function collected(events: Parameters<StreamAccumulator['feed']>[0][]) {
  const turns = [new StreamAccumulator()]
  for (const event of events) {
    turns.at(-1)?.feed(event)
    if (event.type === 'Done') turns.push(new StreamAccumulator())
  }
  return turns.map(accumulator => accumulator.finish())
}

function extended(content: TaskMessageContent, json: string, delta: { type: string } & Record<string, unknown>) {
  if (content.type === 'text') return { content: { ...content, content: content.content + delta.text_delta }, json }
  if (content.type === 'tool_request') return { content, json: json + delta.arguments_delta }
  if (content.type === 'tool_response') return { content: { ...content, content: `${content.content ?? ''}${delta.content_delta}` }, json }
  if (content.type !== 'reasoning') return { content, json: json + delta.data_delta }
  const summary = [...content.summary]
  const at = Number(delta.summary_index)
  while (summary.length <= at) summary.push('')
  summary[at] += String(delta.summary_delta)
  return { content: { ...content, summary }, json }
}

function closed(shown: { content: TaskMessageContent; json: string } | undefined): TaskMessageContent | undefined {
  if (!shown || shown.json.trim() === '') return shown?.content
  return shown.content.type === 'tool_request' ? { ...shown.content, arguments: JSON.parse(shown.json) } : shown.content
}
