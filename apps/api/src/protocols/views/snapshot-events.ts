/**
 * A snapshot as the events of a log that ends where the snapshot stands, for views, which know events only.
 *
 * Each turn of it starts, has its messages one after the other, and finishes if it has ended. A message starts empty and grows by one delta,
 * because views repeat what a message starts with in every chunk of it. Turns whose messages the snapshot leaves out
 * because of its size are left out too, as are those whose end the client has.
 */
import {
  type Content,
  type Delta,
  type Event,
  hasEnded,
  type Message,
  messageEvents,
  outcomeOf,
  type Snapshot,
  startingWith,
  type Turn,
} from '@rivulet/protocol'

/** The turns that a client has the start of, and those it has the end of. */
type KnownTurns = { begun: ReadonlySet<number>; finished: ReadonlySet<number> }

export function snapshotEvents({ turns, messages, messagesFrom }: Snapshot, { begun, finished }: KnownTurns): Event[] {
  const unfinished = turns.find(({ status }) => !hasEnded(status))?.number ?? Number.POSITIVE_INFINITY
  const firstWhole = messages[0]?.turn ?? (messagesFrom === 0 ? 0 : unfinished)
  let next = messagesFrom
  return turns.flatMap(turn => {
    const own = messages.filter(message => message.turn === turn.number)
    const first = next
    next = (own.at(-1)?.index ?? next - 1) + 1
    if (finished.has(turn.number) || (turn.number < firstWhole && !begun.has(turn.number))) return []
    return [...opening(turn, own, first), ...own.slice(inputsOf(own).length).flatMap(growing), ...closing(turn)]
  })
}

function opening(turn: Turn, own: readonly Message[], next: number): Event[] {
  const { status, input: content, inputs: contents, omitted, queuedAt, startedAt } = turn
  const isStarted = startedAt !== undefined && status !== 'queued'
  if (!isStarted) {
    const input = { ...(content && { input: content }), ...(contents && { inputs: contents }), ...(omitted && { omitted }) }
    return [{ type: 'turn.queued', ...stampOf(turn), attempt: 0, at: Date.parse(queuedAt), ...input }]
  }
  const inputs = inputsOf(own)
  const firstIndex = (own[0]?.index ?? next) + inputs.length
  return [{ type: 'turn.started', ...stampOf(turn), at: Date.parse(startedAt), firstIndex, ...startingWith(inputs) }]
}

function closing(turn: Turn): Event[] {
  const { status, stopReason = 'other', usage, error, queuedAt, finishedAt = queuedAt } = turn
  if (!hasEnded(status)) return []
  const outcome = { status: outcomeOf(status), stopReason, ...(usage && { usage }), ...(error && { error }) }
  return [{ type: 'turn.finished', ...stampOf(turn), at: Date.parse(finishedAt), ...outcome }]
}

function growing(message: Message): Event[] {
  const { task, turn, attempt, index } = message
  const [content, deltas] = split(message.content)
  const [started, ...rest] = messageEvents({ ...message, content })
  if (!started) return []
  const grown = deltas.map((delta): Event => ({ type: 'message.delta', task, turn, attempt, at: started.at, index, delta, offset: 0 }))
  return [started, ...grown, ...rest]
}

/** The content that a message starts with, and the deltas that lead from there to its content. */
function split(content: Content): [Content, Delta[]] {
  switch (content.type) {
    case 'text':
      return content.text === '' ? [content, []] : [{ ...content, text: '' }, [{ type: 'text', text: content.text }]]
    case 'reasoning': {
      const summaries = content.summary.map((text, index): Delta => ({ type: 'reasoning_summary', index, text }))
      const contents = content.content.map((text, index): Delta => ({ type: 'reasoning_content', index, text }))
      return [{ ...content, summary: [], content: [] }, [...summaries, ...contents]]
    }
    case 'tool_request': {
      const { raw, ...start } = content
      return raw === undefined ? [content, []] : [start, [{ type: 'tool_request', text: raw }]]
    }
    case 'tool_response': {
      const { content: text } = content
      return typeof text === 'string' ? [{ ...content, content: '' }, [{ type: 'tool_response', text }]] : [content, []]
    }
    case 'data':
    case 'media':
      return [content, []]
    default:
      return content satisfies never
  }
}

/** The messages that the turn was started with: agents write none as the user. */
function inputsOf(own: readonly Message[]): readonly Message[] {
  const end = own.findIndex(({ author }) => author !== 'user')
  return end < 0 ? own : own.slice(0, end)
}

function stampOf({ task, number, attempt }: Turn) {
  return { task, turn: number, attempt }
}
