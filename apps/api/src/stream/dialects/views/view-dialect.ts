/**
 * A view of `@rivulet/views` as a dialect: the events of a whole task, each chunk as an SSE event without a name.
 *
 * What no view has a word for is an SSE event with a name: `restart`, `token` and `end`. A restart comes before a turn that is streamed again
 * from its beginning, because a new attempt has begun or because events are lost: the client drops what it has of that turn. The id of a chunk
 * that is not the last of its event ends with a plus; a client that resumes there gets a restart, because the log holds no part of an event.
 */
import type { Event, TaskState } from '@rivulet/protocol'
import type { Dialect, DialectStream, StreamOptions } from '../dialect.ts'
import { snapshotEvents } from './snapshot-events.ts'

/** `name` is that of the SSE event; null for an event of the view. */
type ViewChunk = { name: 'restart' | 'token' | 'end' | null; data: object }

type CreateView = (from?: TaskState) => (event: Event) => object[]

export function viewDialect(createView: CreateView): Dialect<ViewChunk> {
  return {
    scope: 'task',
    headers: {},
    open: options => openView(createView, options),
    encode: ({ name, data }, cursor, isLast) =>
      `id: ${cursor}${isLast ? '' : '+'}\n${name === null ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`,
    ending: '',
  }
}

async function openView(createView: CreateView, { heard }: StreamOptions): Promise<DialectStream<ViewChunk>> {
  const view = createView()
  const begun = new Set<number>()
  const finished = new Set<number>()
  let isOver = false
  for await (const { event } of heard ?? []) follow(event)
  return { take, hasEnded: () => isOver }

  function take(...[, event]: Parameters<DialectStream['take']>): ViewChunk[] {
    switch (event.type) {
      case 'snapshot': {
        const events = snapshotEvents(event, { begun, finished })
        // A client that missed events may have a part of any of these turns, also from a connection to another process.
        if (event.reason !== 'join') for (const { turn } of events) begun.add(turn)
        return events.flatMap(follow)
      }
      case 'caught_up':
        return []
      case 'token':
        return [{ name: 'token', data: event }]
      case 'end':
        isOver = true
        return [{ name: 'end', data: event }]
      default:
        return follow(event)
    }
  }

  function follow(event: Event): ViewChunk[] {
    const { type, task, turn, attempt } = event
    const restart: ViewChunk[] = type === 'turn.started' && begun.has(turn) ? [{ name: 'restart', data: { task, turn, attempt } }] : []
    if (type === 'turn.started') begun.add(turn)
    if (type === 'turn.finished') finished.add(turn)
    return [...restart, ...view(event).map((data): ViewChunk => ({ name: null, data }))]
  }
}
