/** What one viewer hears, checked: each delta of its task once, in order, from the first to the last. */
import { readMarks } from '../speech.ts'

/** Of all viewers together. */
export type Tally = {
  deliveries: number
  frames: number
  bytes: number
  faults: string[]
  firstAt: number
  lastAt: number
  /** Microseconds from when a delta was said to when it was heard. */
  latencies: Uint32Array
}

export type Hearing = {
  /** Whole frames, and when they came. */
  take(text: string, at: number): void
  /** The last delta that was heard, in order. */
  last(): number
}

/** The first few are enough to know that something is wrong. */
const maxFaults = 5

export function createTally(deliveries: number): Tally {
  return { deliveries: 0, frames: 0, bytes: 0, faults: [], firstAt: 0, lastAt: 0, latencies: new Uint32Array(deliveries) }
}

export function createHearing(tally: Tally): Hearing {
  let last = 0
  return { take, last: () => last }

  function take(text: string, at: number): void {
    tally.firstAt ||= at
    tally.lastAt = at
    tally.bytes += text.length
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n', end + 2)) tally.frames += 1
    readMarks(text, 0, text.length, (number, saidAt) => {
      if (number !== last + 1 && tally.faults.length < maxFaults) tally.faults.push(`${number} came where ${last + 1} belonged`)
      last = number
      tally.latencies[tally.deliveries] = at - saidAt
      tally.deliveries += 1
    })
  }
}
