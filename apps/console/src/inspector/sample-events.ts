/** A turn that needs two attempts, for tests. */
import type { Content, Event, LoggedEvent } from '@rivulet/client'

type Fields<E> = E extends Event ? Omit<E, 'task' | 'turn' | 'attempt' | 'at'> : never

const text: Content = { type: 'text', text: '', format: 'plain' }
const delta = (value: string, offset: number): Fields<Event> => ({
  type: 'message.delta',
  index: 0,
  offset,
  delta: { type: 'text', text: value },
})

const history: [cursor: string, attempt: number, fields: Fields<Event>][] = [
  ['1-1', 0, { type: 'turn.queued' }],
  ['2-1', 1, { type: 'turn.started', firstIndex: 0 }],
  ['2-2', 1, { type: 'message.started', index: 0, author: 'agent', content: text }],
  ['2-3', 1, delta('one ', 0)],
  ['2-4', 1, delta('two', 4)],
  ['2-5', 1, { type: 'message.finished', index: 0, status: 'failed', error: { code: 'agent_error', message: 'no luck' } }],
  ['3-1', 2, { type: 'turn.started', firstIndex: 0 }],
  ['3-2', 2, { type: 'message.started', index: 0, author: 'agent', content: text }],
  ['3-3', 2, delta('other', 0)],
  ['3-4', 2, { type: 'message.finished', index: 0, status: 'complete' }],
  ['3-5', 2, { type: 'turn.finished', status: 'completed', stopReason: 'stop' }],
]

export const sampleEvents = history.map(([cursor, attempt, fields], place) => {
  const common = { task: '01890000-0000-7000-8000-000000000001', turn: 1, attempt, at: 1_000 + place * 10 }
  return { ...fields, ...common, cursor } as LoggedEvent
})
