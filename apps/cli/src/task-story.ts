/** A task told from its beginning: every event once, and how the task stands after it, by the protocol's own fold. */
import { isLogged, type LoggedEvent, type TaskEvent, type TaskHandle } from '@rivulet/client'
import { applyEvent, emptyState, messagesOf, restoreState, type TaskState } from '@rivulet/protocol'
import type { Story } from './transcript.ts'

export async function* tellTask(
  task: Pick<TaskHandle, 'events'>,
  options: { signal?: AbortSignal; follow?: boolean } = {},
): AsyncGenerator<{ event: TaskEvent; state: TaskState }, void, void> {
  let state = emptyState
  for await (const event of task.events({ from: 'start', ...options })) {
    state = stateAfter(state, event)
    yield { event, state }
  }
}

export function storyOf(state: TaskState): Story {
  const current = state.turns.find(({ status }) => status === 'running') ?? state.turns.at(-1)
  return { status: state.status, messages: messagesOf(state), attempt: current?.attempt ?? 0 }
}

function stateAfter(state: TaskState, event: TaskEvent): TaskState {
  if (isLogged(event)) return applyEvent(state, plain(event), event.cursor)
  return event.type === 'snapshot' ? restoreState(event.cursor, { ...event, status: event.task.status }) : state
}

function plain({ cursor: _, ...event }: LoggedEvent): Parameters<typeof applyEvent>[1] {
  return event
}
