/** Bars by stored times: turns and messages whose events are in the log no more; steps, waits and children, which have no events of their own. */
import type { FoldedTurn, Message, Step, Wait } from '@rivulet/client'
import { type Bar, isFailure, kindOf, labelOf } from './bar.ts'

/** What is known of the task beside its log. */
export type Stored = { turns: readonly FoldedTurn[]; messages: readonly Message[]; steps?: readonly Step[] }

const outcomes: Record<FoldedTurn['status'] | Message['status'], Bar['outcome']> = {
  ...{ queued: 'open', running: 'open', waiting: 'open', streaming: 'open', completed: 'good', complete: 'good' },
  ...{ failed: 'bad', canceled: 'stopped', aborted: 'stopped', discarded: 'stopped' },
}

/** @param isInLog whether the log tells of this turn */
export function storedBars({ turns, messages }: Stored, isInLog: (turnNumber: number) => boolean): Bar[] {
  return turns
    .filter(({ number }) => !isInLog(number))
    .flatMap(turn => {
      const { number, attempt, status, queuedAt, startedAt, finishedAt } = turn
      const from = timeOf(queuedAt ?? startedAt)
      if (from === null) return []
      const end = { to: timeOf(finishedAt), outcome: outcomes[status], cursor: null }
      const said = messages.filter(message => message.turn === number && message.author !== 'user')
      const startedMs = timeOf(startedAt)
      return [
        { kind: 'turn', label: `turn ${number}`, from, ...end, message: firstIndexOf(turn, messages) } as const,
        ...(startedMs === null
          ? []
          : [{ kind: 'attempt', label: `attempt ${attempt}`, from: startedMs, ...end, message: said[0]?.index ?? null } as const]),
        ...said.map(message => barOf(message)),
      ]
    })
}

/** Only a step that has succeeded is stored. It leads to the first message that was open in it, else to the last one before its end. */
export function stepBars({ messages, steps = [] }: Stored): Bar[] {
  return steps.map(({ turn, name, startedAt, finishedAt }) => {
    const [from, to] = [Date.parse(startedAt ?? finishedAt), Date.parse(finishedAt)]
    const said = messages.filter(message => message.turn === turn && message.author !== 'user' && Date.parse(message.createdAt) <= to)
    const first = said.find(message => (timeOf(message.finishedAt) ?? to) >= from) ?? said.at(-1)
    return { kind: 'step', label: name, from, to, outcome: 'good', cursor: null, message: first?.index ?? null }
  })
}

/** What a turn waits for, and its children, each as long as it is waited for. */
export function waitBars({ turns }: Stored): Bar[] {
  return turns.flatMap(({ waits = [], finishedAt }) =>
    waits.map(wait => {
      const about = wait.child ? ({ kind: 'child', label: `child ${wait.name}` } as const) : ({ kind: 'wait', label: wait.title } as const)
      return {
        ...about,
        from: Date.parse(wait.createdAt),
        to: endOf(wait, finishedAt),
        outcome: outcomeOf(wait),
        cursor: null,
        message: wait.index ?? null,
      }
    }),
  )
}

function endOf({ status, answer, expiresAt }: Wait, turnEnd: string | undefined): number | null {
  if (status === 'open') return null
  return timeOf(answer?.at ?? (status === 'expired' ? expiresAt : turnEnd))
}

function outcomeOf({ status, kind, answer }: Wait): Bar['outcome'] {
  if (status === 'open') return 'open'
  if (status === 'expired') return kind === 'timer' ? 'good' : 'stopped'
  return status === 'answered' && answer?.action !== 'decline' ? 'good' : 'stopped'
}

function barOf(message: Message): Bar {
  const from = Date.parse(message.createdAt)
  const kind = kindOf(message.content.type)
  const outcome = isFailure(message.content) ? 'bad' : outcomes[message.status]
  const end = { to: timeOf(message.finishedAt), outcome, cursor: null }
  return { kind, label: labelOf(message), from, ...end, message: message.index }
}

function firstIndexOf({ number }: FoldedTurn, messages: readonly Message[]): number | null {
  return messages.find(message => message.turn === number)?.index ?? null
}

function timeOf(iso: string | undefined): number | null {
  return iso === undefined ? null : Date.parse(iso)
}
