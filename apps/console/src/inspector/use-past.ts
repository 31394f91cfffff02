/** The task as of the event that the address names; null when it shows how the task is now. */
import { type FoldedTurn, type Message, messagesOf } from '@rivulet/client'
import { useMemo } from 'react'
import { useQuery } from '../shell/route.ts'
import { type EventLog, positionOf, stateAt } from './event-log.ts'

export type Past = { cursor: string; messages: readonly Message[]; turns: readonly FoldedTurn[]; leave(): void }

export function usePast(log: EventLog): Past | null {
  const [cursor, setCursor] = useQuery('at')
  const position = useMemo(() => (cursor === null ? -1 : positionOf(log, cursor)), [log, cursor])
  const number = log.entries[position]?.number
  // A log only grows at its end, so the fold of a prefix does not change.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the entry's number stands for the log up to it
  const state = useMemo(() => (number === undefined ? null : stateAt(log, position)), [number, cursor])
  return useMemo(
    () => (state && cursor !== null ? { cursor, messages: messagesOf(state), turns: state.turns, leave: () => setCursor(null) } : null),
    [state, cursor, setCursor],
  )
}
