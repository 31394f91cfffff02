/**
 * A task as spans: where its time went. A turn has its queue, its attempts with the back-off between them, and in them the responses of models, tools, steps,
 * waits and children. It is made of what the page has of the task, so it is the same after the log has expired.
 */
import type { Attempt, FoldedTurn, Message, Step } from '@rivulet/client'
import { tokensIn } from '../../transcript/turn-usage.ts'
import { attemptParts } from './attempt-parts.ts'
import { newSpan, outcomes, type Span, timeOf } from './span.ts'

export type Known = {
  turns: readonly FoldedTurn[]
  messages: readonly Message[]
  steps?: readonly Step[]
  /** By the number of the turn; of turns with one attempt there need not be any. */
  attempts?: ReadonlyMap<number, readonly Attempt[]>
}

type Try = Pick<Attempt, 'attempt' | 'status' | 'startedAt' | 'finishedAt' | 'error' | 'messages' | 'usage'>

export function spansOf({ turns, messages, steps = [], attempts = new Map() }: Known): Span[] {
  return turns.flatMap(turn => {
    const isOfTurn = (each: { turn: number }) => each.turn === turn.number
    return spansOfTurn(turn, messages.filter(isOfTurn), steps.filter(isOfTurn), attempts.get(turn.number) ?? [])
  })
}

function spansOfTurn(turn: FoldedTurn, messages: readonly Message[], steps: readonly Step[], stored: readonly Attempt[]): Span[] {
  const { number, status, attempt, queuedAt, startedAt, finishedAt, error, waits = [], cost } = turn
  const from = timeOf(queuedAt ?? startedAt)
  if (from === null) return []
  const end = timeOf(finishedAt)
  const tries = triesOf(turn, stored)
  const inputs = messages.filter(({ author }) => author === 'user').map(({ content }) => content)
  const answer = messages.findLast(({ author, content }) => author === 'agent' && content.type === 'text')
  const common = { turn: number, outcome: outcomes[status] }
  const whole = newSpan({
    ...{ key: `turn ${number}`, kind: 'turn', label: `turn ${number}`, depth: 0, ...common, from, to: end },
    ...{ tokens: tokensIn(turn), cost: cost ?? null, error: error ?? null },
    ...{ input: inputs.length > 0 ? inputs : turn.input ? [turn.input] : [], output: answer ? [answer.content] : [] },
    message: messages[0]?.index ?? null,
  })
  const start = timeOf(tries[0]?.startedAt) ?? end
  const queue =
    start === from
      ? []
      : [
          newSpan({
            ...common,
            key: `queue ${number}`,
            kind: 'queue',
            label: 'queue',
            depth: 1,
            from,
            to: start,
            outcome: start ? 'good' : 'open',
          }),
        ]
  const isOne = tries.length <= 1
  const parts = tries.flatMap((each, place) => {
    const isLast = place === tries.length - 1
    const begin = timeOf(each.startedAt) ?? from
    const isEarlier = each.attempt < attempt
    const own = { turn: number, attempt: each.attempt, depth: isOne ? 1 : 2, isOver: end !== null || !isLast, isEarlier }
    const within = attemptParts({
      ...own,
      from: begin,
      messages: (isLast ? messages : (each.messages ?? [])).filter(({ author }) => author !== 'user'),
      inputs,
      waits: waits.filter(wait => tryOf(tries, wait.createdAt) === place),
      steps: steps.filter(step => tryOf(tries, step.startedAt ?? step.finishedAt) === place),
      turnEnd: finishedAt,
      turnUse: isOne && attempt <= 1 && cost !== undefined ? { tokens: tokensIn(turn), cost } : null,
    })
    if (isOne) return within
    const next = tries[place + 1]
    const to = timeOf(each.finishedAt)
    const row = newSpan({
      ...{ key: `attempt ${number} ${each.attempt}`, kind: 'attempt', label: `attempt ${each.attempt}`, depth: 1, turn: number },
      ...{ attempt: each.attempt, isEarlier, from: begin, to, outcome: outcomes[each.status], error: each.error ?? null },
      ...{
        tokens: tokensIn(each.usage ? { usage: each.usage } : {}),
        message: within.find(({ message }) => message !== null)?.message ?? null,
      },
    })
    const until = next ? timeOf(next.startedAt) : null
    if (to === null || !next) return [row, ...within]
    const label = `back-off before attempt ${next.attempt}`
    return [
      ...[row, ...within],
      newSpan({
        ...{ key: `back-off ${number} ${next.attempt}`, kind: 'back-off', label, depth: 1, turn: number, from: to, to: until },
        outcome: until === null ? 'open' : 'good',
      }),
    ]
  })
  return [whole, ...queue, ...parts]
}

/** In their order. The latest attempt is that of the turn, because what is stored of it may be older. */
function triesOf({ attempt, status, startedAt, finishedAt, error, usage }: FoldedTurn, stored: readonly Attempt[]): Try[] {
  const latest = stored.find(each => each.attempt === attempt)
  const earlier = stored.filter(each => each.attempt < attempt)
  if (!startedAt) return earlier
  const begin = latest?.startedAt ?? startedAt
  const ends = { ...(finishedAt && { finishedAt }), ...(error && { error }), ...(usage && { usage }) }
  return [...earlier, { attempt, status, startedAt: begin, ...ends }]
}

/** The place of the attempt in which something began. */
function tryOf(tries: readonly Try[], at: string): number {
  return Math.max(
    0,
    tries.findLastIndex(({ startedAt }) => startedAt !== undefined && Date.parse(startedAt) <= Date.parse(at)),
  )
}

/** The first and the last moment of spans, of which some may go on. */
export function rangeOf(spans: readonly Span[], now: number): { from: number; to: number } {
  const from = Math.min(...spans.map(span => span.from))
  const to = Math.max(...spans.map(span => span.to ?? Math.max(now, span.from)))
  return Number.isFinite(from) ? { from, to: Math.max(to, from + 1) } : { from: 0, to: 1 }
}
