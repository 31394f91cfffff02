/**
 * Recognises the most frequent entry of a log without parsing it: a text delta exactly as this version writes it. What it accepts is an event of that
 * task, and one line, because no control character is accepted in it.
 */
import type { TaskId } from '@rivulet/protocol'

const count = '(?:0|[1-9]\\d{0,14})'
/** Unrolled, because a choice inside a repetition would be tried again and again on a text that does not match. */
const text = '[^"\\\\\\u0000-\\u001f]*(?:\\\\(?:["\\\\/bfnrt]|u[\\da-f]{4})[^"\\\\\\u0000-\\u001f]*)*'
const rest = new RegExp(
  `"turn":[1-9]\\d{0,14},"attempt":${count},"at":${count},"index":(${count}),"delta":\\{"type":"text","text":"${text}"\\},"offset":${count}\\}$`,
  'y',
)
/** Longer ones are rare enough to be parsed. */
const maxLength = 64 * 1024

export type PlainDeltas = {
  /** The index of the message that the delta extends, or null where the JSON is not such a delta. */
  indexOf(json: string): number | null
}

export function createPlainDeltas(task: TaskId): PlainDeltas {
  const head = `{"type":"message.delta","task":"${task}",`
  return {
    indexOf(json) {
      if (json.length > maxLength || !json.startsWith(head)) return null
      rest.lastIndex = head.length
      const match = rest.exec(json)
      return match ? Number(match[1]) : null
    },
  }
}
