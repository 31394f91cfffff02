/** The events of one message over any number of connections, each event once: it resumes at the last cursor, and ends with `end`. */
import { type Cursor, type MessageEnd, origin } from '@rivulet/protocol'
import { pathOf } from '../http/path-of.ts'
import { unreachable } from '../http/rejection.ts'
import type { StreamDeps } from './reconnecting.ts'
import { resumedFrames } from './resumed-frames.ts'
import { taskDeleted } from './stream-place.ts'
import { type LoggedEvent, parseFrame, type TaskEvent } from './task-event.ts'

/**
 * Those of the log that are about the message, and `turn.started`, after which the message begins anew; `snapshot`, which has this message alone; and
 * `end`, whose status is missing if the task ended without the message.
 */
export type MessageStreamEvent = LoggedEvent | Exclude<TaskEvent, { type: 'end' }> | (MessageEnd & { cursor: Cursor })

export async function* streamMessage(
  deps: StreamDeps,
  { id, index, after, signal }: { id: string; index: number; after?: string | undefined; signal: AbortSignal },
): AsyncGenerator<MessageStreamEvent, void, void> {
  const path = `${pathOf('tasks', id)}/messages/${index}/events`
  let hasCaughtUp = false
  for await (const { id: place, event: name, data } of resumedFrames(deps, { path, after, task: id, signal })) {
    if (name === 'end') {
      yield { ...(JSON.parse(data) as MessageEnd), cursor: (place ?? origin) as Cursor }
      return
    }
    const parsed = parseFrame(place, data)
    if (!parsed) throw unreachable('Malformed SSE frame')
    const { cursor, event } = parsed
    if (event?.type === 'deleted') throw taskDeleted()
    if (event === null || event.type === 'end' || (event.type === 'caught_up' && hasCaughtUp)) continue
    if (event.type === 'caught_up') hasCaughtUp = true
    yield { ...event, cursor }
  }
}
