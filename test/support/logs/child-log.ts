/** The log of a turn that has a child, waits for it, and keeps in the state of its task how far that is. */
import type { Event, OutcomeStatus, TaskId, Wait } from '@rivulet/protocol'
import { type Entry, logOf, task } from './log-entries.ts'

export const child: TaskId = '0198c0de-0000-7000-8000-00000000000c'

/** @param places of the child's start and end */
export function withChild(log: readonly Entry[], status: OutcomeStatus, places: [number, number]): Entry[] {
  const events = log.map(({ event }) => event)
  const [from, to] = places.map(place => place % (events.length - 2)).sort((a, b) => a - b)
  if (from === undefined || to === undefined) throw new Error('A child has two places')
  const at = new Date(1).toISOString()
  const ids = { task, turn: 1, attempt: 0, at: 1 }
  const wait: Wait = {
    ...{ id: '0198c0de-0000-7000-8000-00000000000d', task, turn: 1, agent: 'a', name: 'scout', kind: 'task', title: '', actions: [] },
    ...{ metadata: {}, child, status: 'open', createdAt: at, expiresAt: at },
  }
  const before: Event[] = [
    { type: 'child.started', ...ids, child, name: 'scout' },
    { type: 'turn.waiting', ...ids, wait },
    { type: 'state.changed', ...ids, version: 1, value: { scout: 'running' } },
  ]
  const after: Event[] = [
    { type: 'turn.resumed', ...ids, wait: wait.id, status: 'answered', answer: { action: 'accept', content: { status }, at } },
    { type: 'child.finished', ...ids, child, status },
    { type: 'state.changed', ...ids, version: 2, value: { scout: status } },
  ]
  const all = [...events.slice(0, from + 2), ...before, ...events.slice(from + 2, to + 2), ...after, ...events.slice(to + 2)]
  // Behind the end of the turn there is nothing of it.
  const sorted = [...all.filter(({ type }) => type !== 'turn.finished'), ...all.filter(({ type }) => type === 'turn.finished')]
  return logOf(sorted)
}
