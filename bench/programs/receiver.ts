/** Checks what one viewer receives: each delta of its task once, in order, from the first to the last. */
import { readMarks } from '../measure/speech.ts'

/** The totals of all viewers. */
export type Tally = {
  deliveries: number
  frames: number
  bytes: number
  faults: string[]
  firstAt: number
  /** When the last viewer had its first delta. */
  joinedAt: number
  lastAt: number
  /** Microseconds from the sending of a delta to its receipt. */
  latencies: Uint32Array
}

export type Receiver = {
  /** Takes whole frames and the time of their arrival. */
  take(text: string, at: number): void
  /** The number of the latest delta. */
  last(): number
}

/** The first few faults are enough for an error message. */
const maxFaults = 5

export function createTally(deliveries: number): Tally {
  return { deliveries: 0, frames: 0, bytes: 0, faults: [], firstAt: 0, joinedAt: 0, lastAt: 0, latencies: new Uint32Array(deliveries) }
}

/** Of a stream of several tasks. `last` is the number of the latest delta that all of them have. */
export function createManyReceiver(tally: Tally, tasks: number): Receiver & { isOpen(): boolean } {
  const receivers = new Map<string, Receiver>()
  const watched = new Set<string>()
  return {
    isOpen: () => watched.size === tasks,
    take,
    last: () => (receivers.size < tasks ? 0 : Math.min(...Array.from(receivers.values(), ({ last }) => last()))),
  }

  function take(text: string, at: number): void {
    for (const frame of text.split(/(?<=\n\n)/)) {
      const task = /^id: ([^/\n]+)\//m.exec(frame)?.[1]
      if (task === undefined) continue
      const receiver = receivers.get(task) ?? createReceiver(tally)
      receivers.set(task, receiver)
      receiver.take(frame, at)
      if (/^event: caught_up$/m.test(frame)) watched.add(task)
    }
  }
}

export function createReceiver(tally: Tally): Receiver {
  let last = 0
  return { take, last: () => last }

  function take(text: string, at: number): void {
    tally.firstAt ||= at
    tally.lastAt = at
    tally.bytes += text.length
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n', end + 2)) tally.frames += 1
    const isNew = last === 0
    readMarks(text, 0, text.length, (number, sentAt) => {
      if (number !== last + 1 && tally.faults.length < maxFaults) tally.faults.push(`received ${number}, expected ${last + 1}`)
      last = number
      tally.latencies[tally.deliveries] = at - sentAt
      tally.deliveries += 1
    })
    if (isNew && last > 0) tally.joinedAt = at
  }
}
