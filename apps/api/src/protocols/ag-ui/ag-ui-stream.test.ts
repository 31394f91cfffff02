/** Runs of AG-UI beyond one turn: an input that joins the turn that runs, one that waits behind it, and a question. */
import { type Event, type Message, text, type Wait } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { logOf, replay, snapshotOf, take, task } from '../../../../../test/support/logs/log-entries.ts'
import { run as firstRun, type ReadMessage, readRun } from '../../../test/ag-ui-reader.ts'
import { type AgUiRun, openAgUiStream } from './ag-ui-stream.ts'

const at = new Date(1).toISOString()
const first = { task, turn: 1, attempt: 1, at: 1 }
const second = { task, turn: 2, attempt: 0, at: 1 }
const run: AgUiRun = {
  ...firstRun,
  turnNumber: 2,
  known: new Set(['u1', 'u2']),
  input: { id: 'u2', role: 'user', content: 'two' },
}

const running: Event[] = [
  { type: 'turn.queued', ...first, attempt: 0, input: text('one') },
  { type: 'turn.started', ...first, firstIndex: 1, input: inputOf(0, 1, 'one', 'u1') },
  { type: 'message.started', ...first, index: 1, author: 'agent', content: text('fir') },
  { type: 'turn.queued', ...second, input: text('two') },
]
const spoken: Event[] = [
  { type: 'message.delta', ...first, index: 1, delta: { type: 'text', text: 'st' }, offset: 3 },
  { type: 'message.finished', ...first, index: 1, status: 'complete' },
]
const ended: Event = {
  type: 'turn.finished',
  ...first,
  status: 'completed',
  stopReason: 'stop',
  usage: { inputTokens: 1, cacheReadTokens: 2 },
}

test('an input that joins the turn that runs gets the rest of that turn, and ends with it', async () => {
  const rest: Event[] = [
    ...spoken,
    { type: 'turn.joined', ...second, into: 1, index: 2 },
    { type: 'message.started', ...first, index: 2, author: 'user', content: text('two') },
    { type: 'message.finished', ...first, index: 2, status: 'complete' },
    { type: 'message.started', ...first, index: 3, author: 'agent', content: text('both') },
    { type: 'message.finished', ...first, index: 3, status: 'complete' },
    ended,
  ]
  const { chunks, messages } = await follow(rest)
  expect(messages.map(({ content }) => content)).toEqual(['one', 'first', 'two', 'both'])
  expect(chunks.at(-1)).toMatchObject({ outcome: { type: 'success' }, usage: [{ inputTokens: 1, cachedInputTokens: 2 }] })
})

test('an input that waits behind the turn that runs gets what that turn has said, too', async () => {
  const own = { ...second, attempt: 1 }
  const rest: Event[] = [
    ...spoken,
    ended,
    { type: 'turn.started', ...own, firstIndex: 3, input: inputOf(2, 2, 'two', 'u2') },
    { type: 'message.started', ...own, index: 3, author: 'agent', content: text('next') },
    { type: 'message.finished', ...own, index: 3, status: 'complete' },
    { type: 'turn.finished', ...own, status: 'completed', stopReason: 'stop' },
  ]
  const { chunks, messages } = await follow(rest)
  expect(messages.map(({ content }) => content)).toEqual(['one', 'first', 'two', 'next'])
  expect(readRun(chunks.slice(0, 3), [], true).map(({ id }) => id)).toEqual(['u1', `${task}:1`, 'u2'])
})

test('a run that waits behind another one is canceled when its turn is discarded', async () => {
  const { chunks } = await follow([{ type: 'turn.discarded', ...first, turn: 3, attempt: 0, from: 2 }])
  expect(chunks.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
})

test('a question to a person ends the run once all that were asked together are there', async () => {
  const wait: Wait = {
    ...{ id: task, task, turn: 1, agent: 'a', name: 'w', kind: 'approval', title: 'May I?', actions: ['accept', 'decline'], metadata: {} },
    ...{ status: 'open', createdAt: at, expiresAt: at },
  }
  const other: Wait = { ...wait, id: `${task.slice(0, -1)}2`, kind: 'form', schema: { type: 'object' } }
  const rest: Event[] = [
    { type: 'turn.waiting', ...first, wait, more: true },
    { type: 'turn.waiting', ...first, wait: other },
  ]
  const { chunks } = await follow(rest, { ...run, turnNumber: 1 })
  const reasons = [
    { id: wait.id, reason: 'confirmation', message: 'May I?' },
    { id: other.id, reason: 'input_required' },
  ]
  // The messages come before an interrupt, and what is open again behind them is closed.
  expect(chunks.slice(-5)).toMatchObject([
    { type: 'TEXT_MESSAGE_END' },
    { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u1' }, { content: 'fir' }] },
    { type: 'TEXT_MESSAGE_START' },
    { type: 'TEXT_MESSAGE_END' },
    { type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts: reasons } },
  ])
  const answered = await follow(rest, { ...run, turnNumber: 1, answered: new Set([wait.id]) })
  expect(answered.chunks.at(-1)).toMatchObject({ outcome: { interrupts: [{ id: other.id }] } })
})

async function follow(rest: readonly Event[], wanted = run) {
  const log = logOf([...running, ...rest])
  const past = log.slice(0, running.length)
  const stream = await openAgUiStream(wanted, undefined)
  const chunks = [...stream.take(past.at(-1)?.cursor ?? '0-0', snapshotOf(past, 'join')), ...take(stream, log.slice(past.length))]
  const had: ReadMessage[] = [
    { id: 'u1', role: 'user', content: 'one' },
    { id: 'u2', role: 'user', content: 'two' },
  ]
  return { chunks, messages: readRun(chunks, had) }
}

function inputOf(index: number, turn: number, said: string, id: string): Message {
  return {
    ...{ task, index, turn, attempt: 1, author: 'user', content: text(said), metadata: { 'ag-ui': { message: id } } },
    ...{ status: 'complete', createdAt: at, finishedAt: at },
  }
}

test('children are subagents, once in each run, and those that go on are suspended when the run ends', async () => {
  const [one, two, three] = ['01', '02', '03'].map(end => `0198c0de-0000-7000-8000-0000000000${end}`)
  if (!one || !two || !three) throw new Error('There are three')
  const beginning: Event[] = [...running.slice(0, 2), { type: 'child.started', ...first, child: one, name: 'scout' }]
  const rest: Event[] = [
    { type: 'child.started', ...first, child: two, name: 'critic' },
    { type: 'child.finished', ...first, child: one, status: 'completed' },
    { type: 'child.finished', ...first, child: two, status: 'failed' },
    { type: 'child.finished', ...first, child: two, status: 'failed' },
    { type: 'child.started', ...first, child: three, name: 'clerk' },
    ended,
  ]
  const log = logOf([...beginning, ...rest])
  const started = (child: string, name: string) => ({ type: 'SUBAGENT_STARTED', subagentRunId: child, name })
  const all = [
    started(one, 'scout'),
    started(two, 'critic'),
    { type: 'SUBAGENT_FINISHED', subagentRunId: one, outcome: { type: 'success' } },
    { type: 'SUBAGENT_ERROR', subagentRunId: two, message: 'The subagent has failed', code: 'failed' },
    started(three, 'clerk'),
    { type: 'SUBAGENT_FINISHED', subagentRunId: three, outcome: { type: 'suspended' } },
  ]
  const own: AgUiRun = { ...run, turnNumber: 1 }
  const fresh = await openAgUiStream(own, undefined)
  const back = await openAgUiStream({ ...own, isBack: true }, replay(log.slice(0, 3)))
  for (const [stream, entries] of [[fresh, log] as const, [back, log.slice(3)] as const]) {
    const chunks = take(stream, entries)
    expect(chunks.filter(({ type }) => type.startsWith('SUBAGENT'))).toEqual(all)
    expect(chunks.at(-1)?.type).toBe('RUN_FINISHED')
  }
})
