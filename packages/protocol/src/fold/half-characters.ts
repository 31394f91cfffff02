/**
 * Holds back the first half of a surrogate pair at the end of a text delta until a later delta of the same channel brings the second half.
 * So every delta that is sent is well-formed text, wherever the model cut it.
 */
import { channelOf, type TextDelta } from '../events/delta.ts'
import { toStorableText } from '../values/json.ts'

export type HalfCharacters = {
  /** The delta that can be sent now, or null when there is nothing to send yet. */
  join(index: number, delta: TextDelta): TextDelta | null
  /** The halves still held for a message that closes, each replaced by U+FFFD. */
  flush(index: number): TextDelta[]
  forget(index: number): void
  /** Returns a function that undoes what was joined, flushed and forgotten since. */
  mark(): () => void
}

export function createHalfCharacters(): HalfCharacters {
  let held = new Map<number, Map<string, TextDelta>>()
  return { join, flush, forget: index => held.delete(index), mark }

  function join(index: number, delta: TextDelta): TextDelta | null {
    const halves = held.get(index)
    const text = (halves?.get(channelOf(delta))?.text ?? '') + delta.text
    const endsInHalf = isHighSurrogate(text.charCodeAt(text.length - 1))
    if (endsInHalf) held.set(index, (halves ?? new Map()).set(channelOf(delta), { ...delta, text: text.slice(-1) }))
    else halves?.delete(channelOf(delta))
    const ready = toStorableText(endsInHalf ? text.slice(0, -1) : text)
    if (ready === '') return null
    return ready === delta.text ? delta : { ...delta, text: ready }
  }

  function flush(index: number): TextDelta[] {
    const halves = held.get(index)
    held.delete(index)
    return halves ? Array.from(halves.values(), half => ({ ...half, text: '\uFFFD' })) : []
  }

  function mark(): () => void {
    const before = new Map(Array.from(held, ([index, halves]) => [index, new Map(halves)]))
    return () => {
      held = before
    }
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}
