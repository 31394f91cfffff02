/**
 * A task as spans, for trace collectors. A pure reduction: the same log gives the same spans, with ids and times from the log.
 *
 * Each attempt at a turn is a span. Below it, each text and reasoning is a span, and each call, from its request to the result with its id.
 * A result without a call gives no span. A span that the log does not end is closed as incomplete where the log or the attempt ends.
 */
import {
  type Event,
  type EventOf,
  emptyState,
  isMessageEvent,
  type JsonObject,
  type Message,
  type MessageEvent,
  type Usage,
} from '@rivulet/protocol'
import { createFollower } from './follower.ts'

export type Span = {
  traceId: string
  id: string
  parentId: string | null
  kind: 'turn' | 'message' | 'tool'
  name: string
  /** Milliseconds since 1970. */
  startedAt: number
  endedAt: number
  status: 'ok' | 'error' | 'aborted' | 'incomplete'
  attributes: JsonObject
}

/** The trace of the spans, and the parent of the turns. Default: a trace with the task's id, and no parent. */
export type TraceContext = { traceId?: string; parentId?: string | null }

export function spansOf(events: Iterable<Event>, { traceId, parentId = null }: TraceContext = {}): Span[] {
  const follower = createFollower(emptyState)
  const spans: Span[] = []
  const open = new Map<string, Span>()
  let latest = 0

  for (const event of events) {
    if (isMessageEvent(event)) readMessage(event)
    else {
      follower.follow(event)
      if (event.type === 'turn.started') begin(event)
      if (event.type === 'turn.finished') end(event)
    }
    latest = event.at
  }
  closeOpen()
  return spans

  function begin(event: EventOf<'turn.started'>): void {
    closeOpen()
    start(event, turnKey(event), parentId, { kind: 'turn', name: `turn ${event.turn}`, attributes: { attempt: event.attempt } })
  }

  function end(event: EventOf<'turn.finished'>): void {
    const { status, usage, at } = event
    const statuses = { completed: 'ok', failed: 'error', canceled: 'aborted' } as const
    finish(turnKey(event), at, statuses[status], usage)
    closeOpen(at)
  }

  function readMessage(event: MessageEvent): void {
    const change = follower.followMessage(event)
    if (!change || event.type === 'message.delta') return
    const { before, message } = change
    const { content, status } = message
    if (content.type === 'tool_request') {
      const key = callKey(event, content.callId)
      if (status === 'complete')
        start(event, key, turnKey(event), { kind: 'tool', name: content.name, attributes: { callId: content.callId } })
    } else if (content.type === 'tool_response') {
      if (status !== 'streaming') finish(callKey(event, content.callId), event.at, content.isError ? 'error' : outcomeOf(status))
    } else {
      const key = `${turnKey(event)}/${event.index}`
      if (!before) start(event, key, turnKey(event), { kind: 'message', name: content.type, attributes: { index: event.index } })
      if (status !== 'streaming') finish(key, event.at, outcomeOf(status), message.usage)
    }
  }

  function start(event: Event, id: string, parent: string | null, what: Pick<Span, 'kind' | 'name' | 'attributes'>): void {
    const span: Span = {
      traceId: traceId ?? event.task,
      id,
      parentId: parent,
      startedAt: event.at,
      endedAt: event.at,
      status: 'incomplete',
      ...what,
    }
    spans.push(span)
    open.set(id, span)
  }

  function finish(id: string, endedAt: number, status: Span['status'], usage?: Usage): void {
    const span = open.get(id)
    if (!span) return
    open.delete(id)
    Object.assign(span, { endedAt, status, ...(usage && { attributes: { ...span.attributes, usage } }) })
  }

  function closeOpen(at = latest): void {
    for (const id of [...open.keys()]) finish(id, at, 'incomplete')
  }
}

function turnKey({ turn: turnNumber, attempt }: Event): string {
  return `turn-${turnNumber}-${attempt}`
}

function callKey(event: Event, callId: string): string {
  return `${turnKey(event)}/call-${callId}`
}

function outcomeOf(status: Message['status']): Span['status'] {
  if (status === 'streaming') return 'incomplete'
  return status === 'complete' ? 'ok' : status === 'aborted' ? 'aborted' : 'error'
}
