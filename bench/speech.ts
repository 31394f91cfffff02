/**
 * What every contestant says, and how its hearers know that nothing is missing.
 *
 * A delta's text begins with a mark: its number within its task, from 1, and when it was said. Marks survive being merged, wrapped in JSON and
 * cut into frames, so a viewer counts them and nothing else. `#` stands nowhere but at the beginning of a mark.
 */

/** What the tasks of one run say. */
export type Plan = {
  tasks: number
  /** Of each task. */
  deltas: number
  /** Of each task; null: as fast as they are taken. */
  perSecond: number | null
}

const markLength = '#000001@00000000000001;'.length
/** A word or two, as a model says them; with the mark, 32 characters. */
const words = ' and so on'.slice(0, 32 - markLength)

/** Microseconds on a clock that all processes of a machine share. */
export function now(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e6 + Math.round(nanoseconds / 1e3)
}

export function textOf(number: number, at: number = now()): string {
  return `#${String(number).padStart(6, '0')}@${String(at).padStart(14, '0')};${words}`
}

/** The marks in a text, in their order; -1 as a number for what looks like one and is none. */
export function readMarks(text: string, from: number, to: number, hear: (number: number, saidAt: number) => void): void {
  for (let at = text.indexOf('#', from); at >= 0 && at < to; at = text.indexOf('#', at + markLength)) {
    const isMark = text[at + 7] === '@' && text[at + 22] === ';'
    hear(isMark ? Number(text.slice(at + 1, at + 7)) : -1, Number(text.slice(at + 8, at + 22)))
  }
}

/** The same event that Rivulet sends, for those who have none of their own: everybody moves the same bytes. Nothing in it needs escaping. */
export function eventOf(task: string, number: number, text: string): string {
  const stamp = `"type":"message.delta","task":"${task}","turn":1,"attempt":1,"at":${Date.now()}`
  return `{${stamp},"index":0,"delta":{"type":"text","text":"${text}"},"offset":${(number - 1) * text.length}}`
}

/**
 * What one task says, when it is time. With a pace, tasks keep to a clock from their own beginning on, somewhere within the first interval, and
 * say what is late at once. Without one, each delta comes in its own round of the event loop, as from a socket.
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

// The timers of node:timers/promises take several times the CPU of these.
function until(atMs: number): Promise<void> | void {
  const leftMs = atMs - performance.now()
  if (leftMs > 0) return new Promise(resolve => setTimeout(resolve, leftMs))
}

function nextRound(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
