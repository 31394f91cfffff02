/**
 * The deltas that every contestant sends, and the marks by which viewers detect a missing one.
 *
 * A delta's text begins with a mark: its number within its task, from 1, and the time of sending. Marks survive merging, JSON encoding and
 * framing, so a viewer only counts marks. `#` occurs only at the beginning of a mark.
 */

/** The load of one run. */
export type Plan = {
  tasks: number
  /** Deltas of each task. */
  deltas: number
  /** Deltas per second of each task; null means as fast as possible. */
  perSecond: number | null
}

const markLength = '#000001@00000000000001;'.length
/** A word or two, like a model's token; 32 characters with the mark. */
const words = ' and so on'.slice(0, 32 - markLength)

/** Microseconds on a clock that all processes of a machine share. */
export function now(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e6 + Math.round(nanoseconds / 1e3)
}

export function textOf(number: number, at: number = now()): string {
  return `#${String(number).padStart(6, '0')}@${String(at).padStart(14, '0')};${words}`
}

/** Calls `onMark` for each mark in a text, in order; with the number -1 for a malformed mark. */
export function readMarks(text: string, from: number, to: number, onMark: (number: number, sentAt: number) => void): void {
  for (let at = text.indexOf('#', from); at >= 0 && at < to; at = text.indexOf('#', at + markLength)) {
    const isMark = text[at + 7] === '@' && text[at + 22] === ';'
    onMark(isMark ? Number(text.slice(at + 1, at + 7)) : -1, Number(text.slice(at + 8, at + 22)))
  }
}

/** The event that Rivulet sends, also for contestants without an event format, so that all move the same bytes. It needs no escaping. */
export function eventOf(task: string, number: number, text: string): string {
  const stamp = `"type":"message.delta","task":"${task}","turn":1,"attempt":1,"at":${Date.now()}`
  return `{${stamp},"index":0,"delta":{"type":"text","text":"${text}"},"offset":${(number - 1) * text.length}}`
}

/**
 * The deltas of one task, at their time. With a rate, each task follows its own clock, which starts within the first interval, and sends late
 * deltas at once. Without a rate, each delta is sent in its own round of the event loop, as from a socket.
 */
export async function* speak(
  { tasks, deltas, perSecond }: Plan,
  task: number,
): AsyncGenerator<{ number: number; text: string }, void, void> {
  const intervalMs = perSecond === null ? 0 : 1_000 / perSecond
  const beginMs = performance.now() + (intervalMs * task) / tasks
  for (let number = 1; number <= deltas; number += 1) {
    if (perSecond === null) await nextRound()
    else await until(beginMs + intervalMs * (number - 1))
    yield { number, text: textOf(number) }
  }
}

// Not node:timers/promises, because its timers take several times the CPU.
function until(atMs: number): Promise<void> | void {
  const leftMs = atMs - performance.now()
  if (leftMs > 0) return new Promise(resolve => setTimeout(resolve, leftMs))
}

function nextRound(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
