/** The judge of viewers is worth something only if it goes red: an honest journal has no fault, and every way to spoil it is found. */
import { decodeByteText } from '@rivulet/broker'
import type { Cursor, Event, EventOf, Message } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../support/agents/scripts.ts'
import { faultsIn, foldJournal } from '../support/judge/judge.ts'
import { createTaskWorld } from '../support/judge/task-world.ts'
import { isLogged, type Journal } from '../support/viewers/viewer.ts'
import { type Frame, newConnection } from '../support/viewers/viewer-connection.ts'

type Spoil = (journal: Journal, random: () => number) => void

test.each([1, 2, 3, 4, 5])('an honest journal has no fault (seed %i)', seed => {
  const { journal, rows, log } = recorded(seed)
  expect(faultsIn(journal, { rows, log })).toEqual([])
})

describe.each<[string, Spoil]>([
  ['an event is missing', (journal, random) => drop(journal, random)],
  ['an event comes twice', (journal, random) => repeatOne(journal, random)],
  ['two events are swapped', (journal, random) => swap(journal, random)],
  ['an offset is wrong', journal => changeDelta(journal, event => ({ ...event, offset: event.offset + 1 }))],
  ['a text is wrong', journal => changeDelta(journal, event => ({ ...event, delta: { type: 'text', text: 'other' } }))],
  ['a turn finishes twice', journal => addFinish(journal)],
  ['a snapshot is missing after a gap', journal => loseGap(journal)],
  ['a snapshot leaves out a message', journal => shortenSnapshot(journal)],
  ['a connection catches up twice', journal => addWire(journal, 'caught_up')],
  ['something comes after the end', journal => void framesOf(journal).push(...framesOf(journal).slice(-2, -1))],
  ['a viewer joins without a snapshot', journal => void journal.connections[0]?.frames.shift()],
  ['a retry is missing', journal => void journal.connections[0]?.retries.pop()],
  ['something is no frame', journal => void journal.connections[0]?.oddities.push('{"id":"1-1"}')],
  ['the end is missing', journal => void journal.connections.pop()],
])('when %s', (_, spoil) => {
  test.each([1, 2, 3, 4, 5])('it is found (seed %i)', seed => {
    const { journal, rows, log } = recorded(seed)
    spoil(journal, seededRandom(seed))
    expect(faultsIn(journal, { rows, log })).not.toEqual([])
    // Without the log at hand as well: the numbers of an epoch have no holes.
    expect(faultsIn(journal, { rows })).not.toEqual([])
  })
})

/** What a viewer hears of a task, with a join, a cut, and a gap that a snapshot covers. */
function recorded(seed: number): { journal: Journal; rows: Message[]; log: Cursor[] } {
  for (let next = seed * 1_000; ; next += 1) {
    const log: Frame[] = []
    const world = createTaskWorld({
      random: seededRandom(next),
      onPush: ({ entries }) =>
        log.push(...entries.map(({ cursor, json }) => ({ id: cursor, data: JSON.parse(decodeByteText(json)) as Event }))),
    })
    while (world.step());
    const { task, turns, messages: rows } = world.rows()
    const third = Math.floor(log.length / 3)
    const isRetried = log.some(({ data }) => 'attempt' in data && data.attempt > 1)
    if (turns.length !== 1 || isRetried || third < 4 || !log.slice(2 * third).some(isTextDelta)) continue

    const stateAt = (place: number) => {
      const journal = { task: task.id, connections: [{ ...newConnection('?from=start', null), frames: log.slice(0, place) }] }
      const { state } = foldJournal(journal)
      const messages = Array.from(state.messages, ({ message }) => message)
      const known = turns.map(turn => ({ ...turn, ...state.turns[0], status: state.turns[0]?.status ?? turn.status }))
      return { id: log[place - 1]?.id ?? '0-0', status: state.status, turns: known, messages, messagesFrom: state.messagesFrom }
    }
    const snapshot = (place: number, reason: 'join' | 'gap'): Frame => {
      const { id, status, turns: known, messages, messagesFrom } = stateAt(place)
      return { id, data: { type: 'snapshot', reason, task: { ...task, status }, turns: known, messages, messagesFrom } }
    }
    const wire = (place: number): Frame => ({ id: log[place - 1]?.id ?? '0-0', data: { type: 'caught_up', task: task.id } })
    const end: Frame = { id: log.at(-1)?.id ?? '0-0', data: { type: 'end', task: task.id, status: 'completed' } }
    const journal: Journal = {
      task: task.id,
      connections: [
        connection(null, [snapshot(2, 'join'), wire(2), ...log.slice(2, third + 2)]),
        connection(log[third + 1]?.id ?? null, [snapshot(2 * third, 'gap'), wire(2 * third), ...log.slice(2 * third), end]),
      ],
    }
    return { journal, rows, log: log.map(({ id }) => id) }
  }
}

function connection(after: Cursor | null, frames: Frame[]) {
  return { ...newConnection('', after), status: 200, retries: [2_000], frames, isOpen: false }
}

function framesOf(journal: Journal): Frame[] {
  return journal.connections.at(-1)?.frames ?? []
}

/** A place among the events of the last connection, with one before and one behind it. */
function somewhere(journal: Journal, random: () => number): number {
  const places = framesOf(journal).flatMap((frame, i) => (isLogged(frame) && frame.data.type !== 'turn.finished' ? [i] : []))
  return places[Math.floor(random() * (places.length - 1))] ?? 0
}

function drop(journal: Journal, random: () => number): void {
  framesOf(journal).splice(somewhere(journal, random), 1)
}

function repeatOne(journal: Journal, random: () => number): void {
  const place = somewhere(journal, random)
  framesOf(journal).splice(place, 0, ...framesOf(journal).slice(place, place + 1))
}

function swap(journal: Journal, random: () => number): void {
  const frames = framesOf(journal)
  const place = somewhere(journal, random)
  frames.splice(place, 2, ...frames.slice(place, place + 2).reverse())
}

function changeDelta(journal: Journal, make: (event: EventOf<'message.delta'>) => Event): void {
  const frame = framesOf(journal).findLast(isTextDelta)
  if (frame?.data.type === 'message.delta') frame.data = make(frame.data)
}

function isTextDelta({ data }: Frame): boolean {
  return data.type === 'message.delta' && data.delta.type === 'text'
}

function addFinish(journal: Journal): void {
  const frames = framesOf(journal)
  const finished = frames.find(({ data }) => data.type === 'turn.finished')
  if (finished) frames.splice(-1, 0, finished)
}

function loseGap(journal: Journal): void {
  framesOf(journal).shift()
}

function shortenSnapshot(journal: Journal): void {
  const [first] = framesOf(journal)
  if (first?.data.type === 'snapshot') first.data = { ...first.data, messages: first.data.messages.slice(0, -1) }
}

function addWire(journal: Journal, type: 'caught_up'): void {
  const [first] = framesOf(journal)
  if (first) framesOf(journal).splice(1, 0, { id: first.id, data: { type, task: journal.task } })
}
