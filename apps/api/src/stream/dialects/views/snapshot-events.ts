/**
 * A snapshot as the events of a log that ends where the snapshot stands, for views, which know events only.
 *
 * Each turn of it starts, has its messages one after the other, and finishes if it has ended. Turns whose messages the snapshot leaves out
 * because of its size are left out too, as are those whose end the client has.
 */
import { type Event, hasEnded, type Message, messageEvents, type Snapshot, type Turn } from '@rivulet/protocol'

/** The turns that a client has the start of, and those it has the end of. */
export type KnownTurns = { begun: ReadonlySet<number>; finished: ReadonlySet<number> }

export function snapshotEvents({ turns, messages, messagesFrom }: Snapshot, { begun, finished }: KnownTurns): Event[] {
  const unfinished = turns.find(({ status }) => !hasEnded(status))?.number ?? Number.POSITIVE_INFINITY
  const firstWhole = messages[0]?.turn ?? (messagesFrom === 0 ? 0 : unfinished)
  let next = messagesFrom
  return turns.flatMap(turn => {
    const own = messages.filter(message => message.turn === turn.number)
    const first = next
    next = (own.at(-1)?.index ?? next - 1) + 1
    if (finished.has(turn.number) || (turn.number < firstWhole && !begun.has(turn.number))) return []
    return [
      ...opening(turn, own, first),
      ...own.filter(message => message !== inputOf(own)).flatMap(message => messageEvents(message)),
      ...closing(turn),
    ]
  })
}

function opening(turn: Turn, own: readonly Message[], next: number): Event[] {
  const { status, input: content, omitted, queuedAt, startedAt } = turn
  const isStarted = startedAt !== undefined && status !== 'queued'
  if (!isStarted) {
    const told = { ...(content && { input: content }), ...(omitted && { omitted }) }
    return [{ type: 'turn.queued', ...stampOf(turn), attempt: 0, at: Date.parse(queuedAt), ...told }]
  }
  const input = inputOf(own)
  const firstIndex = input ? input.index + 1 : (own[0]?.index ?? next)
  return [{ type: 'turn.started', ...stampOf(turn), at: Date.parse(startedAt), firstIndex, ...(input && { input }) }]
}

function closing(turn: Turn): Event[] {
  const { status, stopReason = 'other', usage, error, queuedAt, finishedAt = queuedAt } = turn
  if (!hasEnded(status)) return []
  const outcome = { status, stopReason, ...(usage && { usage }), ...(error && { error }) }
  return [{ type: 'turn.finished', ...stampOf(turn), at: Date.parse(finishedAt), ...outcome }]
}

/** The message that the turn was started with: agents write none as the user. */
function inputOf([first]: readonly Message[]): Message | undefined {
  return first?.author === 'user' ? first : undefined
}

function stampOf({ task, number, attempt }: Turn) {
  return { task, turn: number, attempt }
}
