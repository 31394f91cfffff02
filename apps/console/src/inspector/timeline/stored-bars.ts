/** Turns and messages as bars by the times that are stored with them, for turns whose events are in the log no more. */
import type { FoldedTurn, Message } from '@rivulet/client'
import { type Bar, kindOf, labelOf } from './bar.ts'

/** What is known of the task beside its log. */
export type Stored = { turns: readonly FoldedTurn[]; messages: readonly Message[] }

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

function barOf(message: Message): Bar {
  const from = Date.parse(message.createdAt)
  const kind = kindOf(message.content.type)
  const end = { to: timeOf(message.finishedAt), outcome: outcomes[message.status], cursor: null }
  return { kind, label: labelOf(message), from, ...end, message: message.index }
}

function firstIndexOf({ number }: FoldedTurn, messages: readonly Message[]): number | null {
  return messages.find(message => message.turn === number)?.index ?? null
}

function timeOf(iso: string | undefined): number | null {
  return iso === undefined ? null : Date.parse(iso)
}
