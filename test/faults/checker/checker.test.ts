/**
 * The checker on paper: a history in which every promise was kept has no violation, and each way to break one is found, under the promise that
 * was broken. On a platform, with our rules switched off: `demand/checker.test.ts`.
 */
import {
  applyEvent,
  type Cursor,
  type Event,
  emptyState,
  formatCursor,
  type Message,
  messagesOf,
  origin,
  type Task,
  type Turn,
  type Wait,
} from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { newConnection } from '../../support/viewers/viewer-connection.ts'
import { violationsIn } from './checker.ts'
import type { History } from './history.ts'
import { inputOf, type Story, textsOf } from './story.ts'

const id = '01890000-0000-7000-8000-000000000000'
const at = '2026-01-01T00:00:00.000Z'
const atTheEnd = '2026-01-01T00:00:05.000Z'
const waitId = '01890000-0000-7000-8000-000000000002'
const answer = { action: 'accept', at } as const
const story: Story = { label: 'a', turnNumber: 1, words: 3, restMs: 0 }
const openWait: Wait = {
  ...{ id: waitId, task: id, turn: 1, agent: 'scripted', name: 'go', kind: 'approval', title: 'Go?', actions: ['accept', 'decline'] },
  ...{ metadata: {}, status: 'open', createdAt: at, expiresAt: atTheEnd },
}
const words = (textsOf(story, 1)[0] ?? '').split(/(?<= )/)

test('a history in which every promise was kept has no violation', () => {
  expect(violationsIn(kept())).toEqual([])
})

test('a viewer that asks before there is a log may get a gap', () => {
  expect(violationsIn(changed(history => void framesOf(history).unshift(snapshot('gap', origin))))).toEqual([])
})

test.each([
  ['before the end of the last one that its viewers know', '2026-01-01T00:00:04.999Z', true, [], 1],
  ['before that end by its time, but after what was read then', '2026-01-01T00:00:04.999Z', false, [], 0],
  ['before that end by its time, but its client learned it when the viewer had left', '2026-01-01T00:00:04.999Z', true, [2], 0],
  ['after it', atTheEnd, true, [], 0],
])('a turn that was accepted %s is owed to them, or not', (_, queuedAt, isSeen, laterTurns, expected) => {
  const history = changed(({ stored: [entry], looks: [look], viewers: [viewer] }) => {
    if (viewer) viewer.laterTurns = laterTurns
    const [input] = entry?.messages ?? []
    const later = { ...turnOf('completed'), number: 2, queuedAt }
    entry?.detail.turns.push(later)
    if (isSeen) look?.detail.turns.push(later)
    if (input) entry?.messages.push({ ...input, index: 2, turn: 2 })
  })
  expect(violationsIn(history).filter(violation => violation.includes('it holds 2 messages, stored are 3'))).toHaveLength(expected)
})

describe.each<[string, string, (history: History) => void]>([
  ['P1', 'a turn is never ended', history => setTurn(history, { status: 'running' })],
  ['P1', 'a turn is gone', history => void storedIn(history).detail.turns.pop()],
  ['P2', 'a word is not stored', history => setText(history, words.slice(0, 2).join(''))],
  ['P2', 'words of another attempt are stored', history => setText(history, textsOf(story, 2)[0] ?? '')],
  ['P2', 'the input is another one', history => setText(history, 'what?', 0)],
  ['P2', 'an entry stands twice in the log', history => void logOf(history).splice(4, 0, ...logOf(history).slice(3, 4))],
  [
    'P3',
    'a turn still runs when a viewer receives its end',
    history => lookIn(history, ({ turns: [turn] }) => Object.assign(turn ?? {}, { status: 'running' })),
  ],
  ['P3', 'what was read at the end changes afterwards', history => void history.looks[0]?.messages.pop()],
  ['P3', 'a viewer receives another end', history => setTurn(history, { status: 'failed' })],
  ['P3', 'two different responses have won', history => void history.answered.push({ task: id, wait: waitId, action: 'decline' })],
  ['P4', 'a viewer misses a word', history => void framesOf(history).splice(5, 1)],
  ['P4', 'a viewer hears a word twice', history => void framesOf(history).splice(5, 0, ...framesOf(history).slice(5, 6))],
  ['P4', 'a viewer is never told the end', history => void framesOf(history).pop()],
  ['P5', 'a viewer receives a gap, and nothing was lost', history => void framesOf(history).splice(2, 0, snapshot('gap', '1-1'))],
  ['P6', 'what is stored was never run', history => void history.runs.pop()],
  ['P6', 'an append that was answered is not in the log', history => void history.appends[0]?.events.push('{"type":"custom"}')],
])('%s: %s', (promise, _, spoil) => {
  test('is found', () => {
    expect(violationsIn(changed(spoil)).map(violation => violation.slice(0, 2))).toContain(promise)
  })
})

test.each([
  ['is announced twice', 'turn.waiting', 2, 'opened 2 times and closed 1 times'],
  ['is not announced', 'turn.waiting', 0, 'opened 0 times and closed 1 times'],
  ['is closed twice', 'turn.resumed', 2, 'opened 1 times and closed 2 times'],
  ['is closed silently', 'turn.resumed', 0, 'opened 1 times and closed 0 times'],
] as const)('a wait that %s is found', (_, type, times, fault) => {
  const history = changed(history => {
    const log = logOf(history)
    const place = log.findIndex(({ event }) => event.type === type)
    log.splice(place, 1, ...Array.from({ length: times }, () => log[place]).flatMap(entry => entry ?? []))
  })
  expect(violationsIn(history).filter(violation => violation.includes(fault))).toHaveLength(1)
})

/** One task, one turn, one viewer from the start to the end, who looks at once when the turn is finished. */
function kept(): History {
  const log = logged()
  const messages = messagesOf(log.reduce((state, { cursor, event }) => applyEvent(state, event, cursor), emptyState))
  const detail = { task: taskOf('completed'), turns: [turnOf('completed')] }
  const connection = { ...newConnection(`http://127.0.0.1/v1/tasks/${id}/events?from=start`, null), status: 200, retries: [1_000] }
  const [first, ...others] = log.map(({ cursor, event }) => ({ id: cursor, data: event }))
  const last = log.at(-1)?.cursor ?? origin
  if (first) connection.frames.push(first, { id: first.id, data: { type: 'caught_up', task: id } }, ...others)
  connection.frames.push({ id: last, data: { type: 'end', task: id, status: 'completed' } })
  return {
    promised: [{ task: id, story }],
    viewers: [{ task: id, connections: [connection] }],
    looks: [{ task: id, turnNumber: 1, detail, messages }],
    answered: [{ task: id, wait: waitId, action: 'accept' }],
    runs: [{ pid: 1, task: id, turnNumber: 1, attempt: 1, epoch: 2 }],
    appends: [{ task: id, epoch: 2, first: 1, events: log.slice(2, -3).map(({ event }) => JSON.stringify(event)), result: 'ok' }],
    stored: [{ detail, messages }],
    logs: new Map([[id, log]]),
    hasLost: false,
  }
}

/** Nothing in it is shared: what is spoiled is spoiled in one place. */
function changed(spoil: (history: History) => void): History {
  const { stored, looks, ...others } = kept()
  const history = { ...structuredClone(others), stored: structuredClone(stored), looks: structuredClone(looks) }
  spoil(history)
  return history
}

function logged(): { cursor: Cursor; event: Event }[] {
  const common = { task: id, turn: 1, attempt: 1, at: Date.parse(at) }
  const content = { type: 'text' as const, text: inputOf(story), format: 'plain' as const }
  const input: Message = {
    task: id,
    index: 0,
    turn: 1,
    attempt: 1,
    author: 'user',
    content,
    metadata: {},
    status: 'complete',
    createdAt: at,
    finishedAt: at,
  }
  const deltas = words.map((text, i) => ({
    type: 'message.delta' as const,
    ...common,
    index: 1,
    delta: { type: 'text' as const, text },
    offset: words.slice(0, i).join('').length,
  }))
  const said: Event[] = [
    { type: 'turn.started', ...common, firstIndex: 1, input },
    { type: 'message.started', ...common, index: 1, author: 'agent', content: { type: 'text', text: '', format: 'plain' } },
    ...deltas,
    { type: 'message.finished', ...common, index: 1, status: 'complete' },
    { type: 'turn.waiting', ...common, wait: openWait },
    { type: 'turn.resumed', ...common, wait: waitId, status: 'answered', answer },
    { type: 'turn.finished', ...common, status: 'completed', stopReason: 'stop' },
  ]
  return [
    { cursor: formatCursor(1, 1), event: { type: 'turn.queued', ...common, attempt: 0, input: content } },
    ...said.map((event, i) => ({ cursor: formatCursor(2, i + 1), event })),
  ]
}

function snapshot(reason: 'gap', cursor: Cursor) {
  return {
    id: cursor,
    data: { type: 'snapshot' as const, reason, task: taskOf('queued'), turns: [turnOf('queued')], messages: [], messagesFrom: 0 },
  }
}

function taskOf(status: Task['status']): Task {
  return { id, agent: 'scripted', status, params: null, metadata: {}, createdAt: at, updatedAt: at }
}

function turnOf(status: Turn['status']): Turn {
  return {
    id: '01890000-0000-7000-8000-000000000001',
    task: id,
    number: 1,
    status,
    attempt: status === 'queued' ? 0 : 1,
    queuedAt: at,
    startedAt: at,
    ...(status === 'completed' && { finishedAt: atTheEnd, waits: [{ ...openWait, status: 'answered', answer }] }),
  }
}

function storedIn({ stored: [first] }: History) {
  if (!first) throw new Error('Nothing is stored')
  return first
}

function setTurn(history: History, change: Partial<Turn>): void {
  Object.assign(storedIn(history).detail.turns[0] ?? {}, change)
}

function setText(history: History, text: string, index = 1): void {
  Object.assign(storedIn(history).messages[index] ?? {}, { content: { type: 'text', text, format: 'plain' } })
}

function lookIn({ looks: [look] }: History, change: (detail: History['looks'][number]['detail']) => void): void {
  if (look) change(look.detail)
}

function framesOf({ viewers: [viewer] }: History) {
  return viewer?.connections[0]?.frames ?? []
}

function logOf({ logs }: History) {
  return logs.get(id) ?? []
}
