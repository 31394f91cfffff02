/**
 * A task from its beginning: every event once, with the state of the task after it, by the protocol's fold. Messages that a snapshot leaves out
 * are read from the stored messages.
 */
import { isLogged, type LoggedEvent, type SnapshotEvent, type TaskEvent, type TaskHandle } from '@rivulet/client'
import { applyOrSkip, emptyState, messagesOf, restoreState, type TaskState } from '@rivulet/protocol'
import { readMessages } from './all-messages.ts'
import type { Story } from './transcript.ts'

export async function* tellTask(
  task: Pick<TaskHandle, 'events' | 'messages'>,
  options: { signal?: AbortSignal; follow?: boolean } = {},
): AsyncGenerator<{ event: TaskEvent; state: TaskState }, void, void> {
  let state = emptyState
  for await (const event of task.events({ from: 'start', ...options })) {
    state = event.type === 'snapshot' ? await wholeState(task, event) : stateAfter(state, event)
    yield { event, state }
  }
}

export function storyOf(state: TaskState): Story {
  const current = state.turns.find(({ status }) => status === 'running') ?? state.turns.at(-1)
  return { status: state.status, messages: messagesOf(state), attempt: current?.attempt ?? 0 }
}

async function wholeState(
  task: Pick<TaskHandle, 'messages'>,
  { cursor, task: { status }, turns, ...rest }: SnapshotEvent,
): Promise<TaskState> {
  const earlier = rest.messagesFrom > 0 ? await readMessages(task, rest.messagesFrom) : []
  const messages = [...earlier, ...rest.messages]
  return restoreState(cursor, { status, turns, messages, messagesFrom: earlier[0]?.index ?? rest.messagesFrom })
}

function stateAfter(state: TaskState, event: TaskEvent): TaskState {
  return isLogged(event) ? applyOrSkip(state, plain(event), event.cursor) : state
}

function plain({ cursor: _, ...event }: LoggedEvent): Parameters<typeof applyOrSkip>[1] {
  return event
}
