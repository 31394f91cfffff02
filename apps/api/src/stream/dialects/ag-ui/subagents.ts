/**
 * The children of a turn as AG-UI's subagents: that they start and end. What a child says is in its own task, which is a thread of its own.
 *
 * AG-UI's client rejects a subagent that starts twice in a run, one that ends without a start, and a run that finishes while one is active.
 */
import type { EventOf, TaskId, Wait } from '@rivulet/protocol'
import type { AgUiChunk } from './message-teller.ts'

type ChildEvent = EventOf<'child.started' | 'child.finished'>
type Child = { name: string; callId?: string | undefined }

/** @param callOf the id under which the client knows a call of the turn */
export function createSubagents(callOf: (child: Pick<Child, 'callId'>) => string | undefined) {
  /** Children that have not ended. */
  const running = new Map<TaskId, Child>()
  /** Those that the client has got in this run. */
  const told = new Set<TaskId>()
  return { hear, begin, tell, suspend }

  /** For a client that resumes: what it may have got in an earlier run. */
  function hear(event: ChildEvent): void {
    if (event.type === 'child.started') running.set(event.child, event)
    else running.delete(event.child)
  }

  /** At the start of a run: the children that have not ended. A snapshot has them as waits. */
  function begin(waits: readonly Wait[] = []): AgUiChunk[] {
    for (const { kind, status, child, name, callId } of waits)
      if (kind === 'task' && status === 'open' && child !== undefined && !running.has(child)) running.set(child, { name, callId })
    return [...running].flatMap(([child, about]) => startOf(child, about))
  }

  function tell(event: ChildEvent): AgUiChunk[] {
    if (event.type === 'child.started') {
      if (told.has(event.child)) return []
      running.set(event.child, event)
      return startOf(event.child, event)
    }
    return running.delete(event.child) && told.has(event.child) ? [endOf(event)] : []
  }

  /** Before a run ends: children that go on without it. */
  function suspend(): AgUiChunk[] {
    const active = [...running.keys()].filter(child => told.has(child))
    running.clear()
    return active.map(subagentRunId => ({ type: 'SUBAGENT_FINISHED', subagentRunId, outcome: { type: 'suspended' } }))
  }

  function startOf(child: TaskId, { name, callId }: Child): AgUiChunk[] {
    if (told.has(child)) return []
    told.add(child)
    const parentToolCallId = callOf({ callId })
    return [{ type: 'SUBAGENT_STARTED', subagentRunId: child, name, ...(parentToolCallId !== undefined && { parentToolCallId }) }]
  }
}

function endOf({ child: subagentRunId, status }: EventOf<'child.finished'>): AgUiChunk {
  if (status === 'completed') return { type: 'SUBAGENT_FINISHED', subagentRunId, outcome: { type: 'success' } }
  return { type: 'SUBAGENT_ERROR', subagentRunId, message: `The subagent has ${status}`, code: status }
}
