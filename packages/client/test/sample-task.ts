/** A task that says a few words, as its log, its snapshots and its rows have it. */
import {
  applyEvent,
  type Cursor,
  type Event,
  emptyState,
  formatCursor,
  messagesOf,
  type Snapshot,
  type Task,
  type Turn,
  text,
} from '@rivulet/protocol'

export type Entry = { cursor: Cursor; event: Event }

export const taskId = '0198c0de-0000-7000-8000-000000000001'
const at = Date.parse('2026-01-01T00:00:00.000Z')
const time = new Date(at).toISOString()

export const task: Task = {
  ...{ id: taskId, agent: 'scripted', status: 'queued', params: null, metadata: {} },
  ...{ createdAt: time, updatedAt: time },
}

export function turn(number: number, status: Turn['status'] = 'queued'): Turn {
  return { id: `0198c0de-0000-7000-9000-00000000000${number}`, task: taskId, number, status, attempt: 0, queuedAt: time }
}

export type Ending = { status: 'completed' | 'failed' | 'canceled'; error?: { code: string; message: string } }

/** One attempt at a turn: each list of words is a message. In the epoch of its number plus the attempt. */
export function turnLog(
  number: number,
  messages: string[][],
  options: { attempt?: number; firstIndex?: number; ending?: Ending | null } = {},
): Entry[] {
  const { attempt = 1, firstIndex = 0, ending = { status: 'completed' } } = options
  const common = { task: taskId, turn: number, attempt, at }
  const events: Event[] = attempt === 1 ? [{ type: 'turn.queued', ...common, attempt: 0 }] : []
  events.push({ type: 'turn.started', ...common, firstIndex })
  for (const [place, words] of messages.entries()) {
    const index = firstIndex + place
    events.push({ type: 'message.started', ...common, index, author: 'agent', content: text() })
    let offset = 0
    for (const word of words) {
      events.push({ type: 'message.delta', ...common, index, delta: { type: 'text', text: word }, offset })
      offset += word.length
    }
    if (ending || place < messages.length - 1) events.push({ type: 'message.finished', ...common, index, status: 'complete' })
  }
  if (ending)
    events.push({
      type: 'turn.finished',
      ...common,
      stopReason: ending.status === 'completed' ? 'stop' : 'error',
      usage: { outputTokens: 2 },
      ...ending,
    })
  return events.map((event, place) => ({ cursor: formatCursor(number * 10 + attempt, place + 1), event }))
}

export function snapshotOf(log: readonly Entry[], reason: Snapshot['reason'] = 'join'): { cursor: Cursor; event: Snapshot } {
  const state = log.reduce((before, entry) => applyEvent(before, entry.event, entry.cursor), emptyState)
  const turns = state.turns.map(({ firstIndex: _, ...said }) => ({ ...turn(said.number), ...said, queuedAt: time }))
  const messages = messagesOf(state)
  const { status, messagesFrom } = state
  return { cursor: state.cursor, event: { type: 'snapshot', reason, task: { ...task, status }, turns, messages, messagesFrom } }
}
