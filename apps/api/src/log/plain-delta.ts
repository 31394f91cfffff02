/**
 * Recognises the most frequent entry of a log without parsing it: a text delta exactly as this version writes it. What it accepts is an event of that
 * task, and one line, because no character below U+0020 is accepted in it. The JSON may be given with a character for each byte of UTF-8, because no byte of
 * a longer character is below U+0080.
 */
import type { TaskId } from '@rivulet/protocol'

const count = '(?:0|[1-9]\\d{0,14})'
/** Unrolled, because a choice inside a repetition would be tried again and again on a text that does not match. */
const text = '[^"\\\\\\u0000-\\u001f]*(?:\\\\(?:["\\\\/bfnrt]|u[\\da-f]{4})[^"\\\\\\u0000-\\u001f]*)*'
const pattern = new RegExp(
  `^\\{"type":"message\\.delta","task":"([^"]*)","turn":[1-9]\\d{0,14},"attempt":${count},"at":${count},"index":(${count}),"delta":\\{"type":"text","text":"${text}"\\},"offset":${count}\\}$`,
)
const taskFrom = '{"type":"message.delta","task":"'.length
/** Longer ones are rare enough to be parsed. */
const maxLength = 64 * 1024

export function isPlainDelta(task: TaskId, json: string): boolean {
  return json.length <= maxLength && json.startsWith(task, taskFrom) && json[taskFrom + task.length] === '"' && pattern.test(json)
}

/**
 * The index of the message that the delta extends, or null where the JSON is not such a delta. For what a worker sends over HTTP; beside an entry of a log
 * stands its index.
 */
export function indexOfDelta(task: TaskId, json: string): number | null {
  const match = json.length > maxLength ? null : pattern.exec(json)
  return match?.[1] === task ? Number(match[2]) : null
}
