/**
 * Reads the frames of one task over any number of connections, and returns each event once. After a loss it has to start with a snapshot, which
 * replaces its place.
 */
import { type Cursor, RivuletError } from '@rivulet/protocol'
import { hear, type Place, withoutEnded } from './stream-place.ts'
import type { TaskEvent } from './task-event.ts'

/** Where a reader without a cursor begins: with every event from the first, or with a snapshot. */
export type Start = 'start' | 'snapshot'

export type Heard = { event: TaskEvent; place: Place }

export type ReaderOptions = {
  place: Place
  from: Start
  /** Forget the messages of turns that have ended: for a reader that hands on what happens and looks at nothing. Default false. */
  isForgetful?: boolean | undefined
  /** Something was missing, and a snapshot is going to replace it. */
  onRepair?: (() => void) | undefined
}

export type TaskReader = {
  readonly place: Place
  /** Where the next connection begins. */
  next(): Cursor | Start
  /** Null for a frame that tells nothing new. Throws `offset_mismatch` when something was lost before it, and `task_not_found` when the task was deleted. */
  read(frame: { id?: string | undefined; data: string }): Heard | null
}

export function createTaskReader({ place: first, from, isForgetful = false, onRepair = () => {} }: ReaderOptions): TaskReader {
  let place = first
  let isRepairing = false
  let hasCaughtUp = false
  return {
    get place() {
      return place
    },
    next: () => (isRepairing ? 'snapshot' : (place.cursor ?? from)),
    read,
  }

  function read(frame: { id?: string | undefined; data: string }): Heard | null {
    const { event, place: next } = hearOrRepair(frame)
    if (event?.type === 'snapshot') isRepairing = false
    const isOver = event?.type === 'turn.finished' || event?.type === 'snapshot'
    place = isForgetful && isOver ? withoutEnded(next) : next
    if (event === null || (event.type === 'caught_up' && hasCaughtUp)) return null
    if (event.type === 'caught_up') hasCaughtUp = true
    return { event, place }
  }

  function hearOrRepair(frame: { id?: string | undefined; data: string }) {
    try {
      return hear(place, frame)
    } catch (error) {
      if (!(error instanceof RivuletError) || error.code === 'task_not_found') throw error
      isRepairing = true
      onRepair()
      throw new RivuletError('offset_mismatch', error.message, { cause: error })
    }
  }
}
