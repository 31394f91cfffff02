/** Laws of the narrator: wherever a reader joins, resumes or misses events, the changes lead it to what is stored. */
import { DeltaAccumulator, type Message, messagesOf, noState, type State, type Wait } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { askingLog } from '../../../test/support/logs/asking-log.ts'
import { withChild } from '../../../test/support/logs/child-log.ts'
import { cursorOf, type Entry, logOf, snapshotOf, stateOf, take, task } from '../../../test/support/logs/log-entries.ts'
import { type Change, Narrator } from './narrator.ts'

const logs = fc.tuple(askingLog, fc.nat(30), fc.nat(30)).map(([log, ...places]) => withChild(log, 'completed', places))
const always = (law: (log: Entry[]) => void) => fc.assert(fc.property(logs, law), { numRuns: 40 })
const places = (log: Entry[]) => Array.from(log.slice(1), (_, place) => place + 1)

test('from the start on, from a snapshot at any event, and from the rows alone, the reader has what is stored', () => {
  always(log => {
    expect(read(take(newNarrator(), log))).toEqual(stored(log))
    for (const place of [...places(log), log.length]) {
      const narrator = newNarrator()
      const joined = narrator.take(cursorOf(log, place), snapshotOf(log.slice(0, place), 'join'))
      expect(read([...joined, ...take(narrator, log.slice(place))])).toEqual(stored(log))
    }
  })
})

test('with events missing anywhere, in place of which a snapshot comes', () => {
  always(log => {
    for (const place of places(log)) {
      const after = Math.min(place + 3, log.length)
      const narrator = newNarrator()
      const before = take(narrator, log.slice(0, place))
      const gap = narrator.take(cursorOf(log, after), snapshotOf(log.slice(0, after), 'gap'))
      expect(read([...before, ...gap, ...take(narrator, log.slice(after))])).toEqual(stored(log))
    }
  })
})

test('a reader that resumes gets the changes that another gets after the same event', () => {
  always(log => {
    for (const place of places(log)) {
      const [steady, back] = [newNarrator(), new Narrator({ turnNumber: null })]
      take(steady, log.slice(0, place))
      for (const { cursor, event } of log.slice(0, place)) back.recall(cursor, event)
      expect(take(back, log.slice(place))).toEqual(take(steady, log.slice(place)))
    }
  })
})

test('an event that comes again changes nothing, and neither does a snapshot of what the reader has', () => {
  always(log => {
    const narrator = newNarrator()
    for (const [place, { cursor, event }] of log.entries()) {
      narrator.take(cursor, event)
      expect(take(narrator, log.slice(0, place + 1))).toEqual([])
      expect(narrator.take(cursor, snapshotOf(log.slice(0, place + 1), 'slow'))).toEqual([])
    }
  })
})

test('a turn that is discarded while it runs ends with its `turn.finished`, behind its last words', () => {
  const ids = { task, turn: 1, at: 1 }
  const content = { type: 'text' as const, text: 'a', format: 'plain' as const }
  const narrator = newNarrator()
  const changes = take(
    narrator,
    logOf([
      { type: 'turn.queued', ...ids, attempt: 0 },
      { type: 'turn.started', ...ids, attempt: 1, firstIndex: 0 },
      { type: 'message.started', ...ids, attempt: 1, index: 0, author: 'agent', content },
      { type: 'turn.discarded', ...ids, turn: 2, attempt: 0, from: 1 },
      { type: 'message.finished', ...ids, attempt: 1, index: 0, status: 'aborted' },
      { type: 'turn.finished', ...ids, attempt: 1, status: 'canceled', stopReason: 'aborted' },
    ]),
  )
  expect(changes.map(({ type }) => type)).toEqual(['started', 'started', 'opened', 'closed', 'ended'])
  expect(changes.at(-1)).toMatchObject({ turn: { status: 'discarded' } })
})

test('a queued turn that is discarded ends at once', () => {
  const ids = { task, turn: 1, at: 1, attempt: 0 }
  const changes = take(
    newNarrator(),
    logOf([
      { type: 'turn.queued', ...ids },
      { type: 'turn.discarded', ...ids, turn: 2, from: 1 },
    ]),
  )
  expect(changes.map(({ type }) => type)).toEqual(['started', 'ended'])
})

function newNarrator(): Narrator {
  return new Narrator({ turnNumber: 1 })
}

type Reader = {
  messages: Map<number, Message>
  waits: Map<string, Wait['status']>
  children: Map<string, string>
  state: State
  outcome: string
}

/** A reader that knows the changes alone, and rejects those that do not follow from what it has. */
function read(changes: readonly Change[]): object {
  const reader: Reader = { messages: new Map(), waits: new Map(), children: new Map(), state: noState, outcome: 'none' }
  for (const change of changes) apply(reader, change)
  const messages = [...reader.messages.values()].sort((a, b) => a.index - b.index)
  const { children, state, outcome } = reader
  return { messages, waits: Object.fromEntries(reader.waits), children: Object.fromEntries(children), state, outcome }
}

function apply(reader: Reader, change: Change): void {
  const { messages, children } = reader
  switch (change.type) {
    case 'started':
    case 'custom':
      break
    case 'child':
      children.set(change.event.child, change.event.type)
      break
    case 'state':
      expect(change.state).not.toEqual(reader.state)
      reader.state = change.state
      break
    case 'reset':
      for (const { index } of change.dropped) expect(messages.delete(index)).toBe(true)
      break
    case 'opened':
      expect(messages.has(change.message.index)).toBe(false)
      messages.set(change.message.index, change.message)
      break
    case 'grew': {
      const grown = DeltaAccumulator.of(own(change.before)).append(change.delta).message
      expect(change.message).toEqual(grown)
      messages.set(grown.index, grown)
      break
    }
    case 'replaced':
      own(change.before)
      messages.set(change.message.index, change.message)
      break
    case 'closed':
      if (change.message.content.type === 'text') expect(change.message.content).toEqual(own(change.before).content)
      messages.set(change.message.index, change.message)
      break
    case 'asked':
      expect(reader.waits.has(change.wait.id)).toBe(false)
      reader.waits.set(change.wait.id, 'open')
      if (change.wait.child) children.set(change.wait.child, 'child.started')
      break
    case 'answered':
      expect(reader.waits.get(change.wait.id)).toBe('open')
      reader.waits.set(change.wait.id, change.wait.status)
      if (change.wait.child) children.set(change.wait.child, 'child.finished')
      break
    case 'ended':
      expect(reader.outcome).toBe('none')
      reader.outcome = change.turn.status
      break
    default:
      change satisfies never
  }

  function own(before: Message): Message {
    const message = messages.get(before.index)
    expect(message).toEqual(before)
    return before
  }
}

function stored(log: Entry[]): object {
  const state = stateOf(log)
  const [turn] = state.turns
  const waits = Object.fromEntries((turn?.waits ?? []).map(({ id, status }) => [id, status]))
  const children = Object.fromEntries(
    (turn?.waits ?? []).flatMap(wait => (wait.child ? [[wait.child, wait.status === 'open' ? 'child.started' : 'child.finished']] : [])),
  )
  return { messages: messagesOf(state), waits, children, state: state.agentState, outcome: turn?.status }
}
