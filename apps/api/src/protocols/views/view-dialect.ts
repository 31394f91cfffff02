/**
 * A view of `@rivulet/views` as a dialect: the events of a whole task, each chunk as an SSE event without a name.
 *
 * Anything that a view has no event for is an SSE event with a name: `turn`, `token` and `end`. `turn` comes before the chunks of a turn. It comes again
 * when the turn is streamed again from its beginning, because a new attempt has begun or events are lost: the client drops what it has of that
 * turn. The id of a chunk that is not the last of its event ends with a plus; a client that resumes there gets the turn again.
 */

import type { StreamFormat } from '@rivulet/contract/fields'
import type { Event, TaskState } from '@rivulet/protocol'
import type { Dialect, DialectStream, StreamOptions } from '../../stream/dialects/dialect.ts'
import { idLine } from '../../stream/sse-frame.ts'
import { snapshotEvents } from './snapshot-events.ts'

/** `name` is that of the SSE event; null for an event of the view. */
type ViewChunk = { name: 'turn' | 'token' | 'end' | 'deleted' | null; data: object }

type CreateView = (from?: TaskState) => (event: Event) => object[]

export function viewDialect(name: StreamFormat, createView: CreateView): Dialect<ViewChunk> {
  return {
    name,
    scope: 'task',
    headers: {},
    open: options => openView(createView, options),
    encode: ({ name: event, data }, cursor, isLast) =>
      `${event === null ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}${idLine(`${cursor}${isLast ? '' : '+'}`)}`,
    ending: '',
  }
}

async function openView(createView: CreateView, { received }: StreamOptions): Promise<DialectStream<ViewChunk>> {
  const view = createView()
  const begun = new Set<number>()
  const finished = new Set<number>()
  let isOver = false
  for await (const { event } of received ?? []) follow(event)
  return { take, hasEnded: () => isOver }

  function take(...[, event]: Parameters<DialectStream['take']>): ViewChunk[] {
    switch (event.type) {
      case 'snapshot':
        return snapshotEvents(event, { begun, finished }).flatMap(follow)
      case 'caught_up':
        return []
      case 'token':
        return [{ name: 'token', data: event }]
      case 'end':
      case 'deleted':
        isOver = true
        return [{ name: event.type, data: event }]
      default:
        return follow(event)
    }
  }

  function follow(event: Event): ViewChunk[] {
    const { type, task, turn: turnNumber, attempt } = event
    if (type === 'turn.started') begun.add(turnNumber)
    if (type === 'turn.finished') finished.add(turnNumber)
    const first: ViewChunk[] = type === 'turn.started' ? [{ name: 'turn', data: { task, turn: turnNumber, attempt } }] : []
    return [...first, ...view(event).map((data): ViewChunk => ({ name: null, data }))]
  }
}
