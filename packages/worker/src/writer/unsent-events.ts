/** The events of one turn that wait to be appended, in order. How deltas travel is the agent's choice: merged while they wait, each by itself, or not. */
import { type Event, type EventOf, mergeDeltas } from '@rivulet/protocol'

/**
 * `merged`: neighbouring deltas of one message become one while they wait. `each`: every delta is an event of its own. `off`: nothing is sent while a
 * message is open, so viewers get whole messages; a turn that has too much unsent sends it anyway.
 */
export type DeltaMode = 'merged' | 'each' | 'off'

/** What a turn without deltas holds back at most. Less than the writer lets wait, because a blocked agent would never close its message. */
const maxHeldBytes = 512 * 1024

/** An event that waits, and about how many bytes it is. */
export type Unsent = { event: Event; size: number }

type UnsentEvents = {
  add(events: readonly Event[]): void
  /** The next events to append. Their bytes count until they are settled. */
  take(count: number): Unsent[]
  /** These are in the log. */
  settle(batch: readonly Unsent[]): void
  /** What waits from now on, instead of what waited and what was taken. Notices are kept, because they are in no fold. */
  replace(batch: readonly Unsent[], events: readonly Event[]): void
  /** Whether there is something to send now. */
  isReady(): boolean
  bytes(): number
}

export function createUnsentEvents(maxDeltaBytes: number, mode: DeltaMode = 'merged'): UnsentEvents {
  let waiting: Unsent[] = []
  let bytes = 0
  const open = new Set<number>()
  return { add, take: count => waiting.splice(0, count), settle, replace, isReady, bytes: () => bytes }

  function isReady(): boolean {
    return waiting.length > 0 && (mode !== 'off' || open.size === 0 || bytes > maxHeldBytes)
  }

  function add(events: readonly Event[]): void {
    for (const event of events) {
      const size = sizeOf(event)
      bytes += size
      note(event)
      const last = waiting.at(-1)
      // Three bytes is the most that one UTF-16 unit can take.
      const isMergeable = last && mode !== 'each' && (last.size + size) * 3 <= maxDeltaBytes
      const merged = isMergeable ? mergeEvents(last.event, event) : null
      if (last && merged) waiting[waiting.length - 1] = { event: merged, size: last.size + size }
      else waiting.push({ event, size })
    }
  }

  function settle(batch: readonly Unsent[]): void {
    bytes -= bytesOf(batch)
  }

  function replace(batch: readonly Unsent[], events: readonly Event[]): void {
    const notices = [...batch, ...waiting].filter(({ event }) => event.type === 'custom')
    waiting = [...events.map(event => ({ event, size: sizeOf(event) })), ...notices]
    bytes = bytesOf(waiting)
    open.clear()
    for (const event of events) note(event)
  }

  function note(event: Event): void {
    if (event.type === 'message.started') open.add(event.index)
    else if (event.type === 'message.finished' || event.type === 'message.replaced') open.delete(event.index)
  }
}

function bytesOf(unsent: readonly Unsent[]): number {
  return unsent.reduce((sum, { size }) => sum + size, 0)
}

/** Spelled out, because it is done for nearly every word, and a spread takes several times as long. */
function mergeEvents(first: Event, second: Event): EventOf<'message.delta'> | null {
  if (first.type !== 'message.delta' || second.type !== 'message.delta' || first.index !== second.index) return null
  const delta = mergeDeltas(first.delta, second.delta)
  const { type, task, turn: turnNumber, attempt, at, index, offset } = first
  return delta && { type, task, turn: turnNumber, attempt, at, index, delta, offset }
}

/** Near enough for a buffer: the text of a delta in UTF-16 units, or a whole event as JSON. */
function sizeOf(event: Event): number {
  if (event.type !== 'message.delta') return JSON.stringify(event).length
  const { delta } = event
  if ('text' in delta) return delta.text.length
  return delta.type === 'media' ? delta.bytes.length : JSON.stringify(delta).length
}
