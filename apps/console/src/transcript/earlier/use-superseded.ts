/** Remembers what earlier attempts said, for as long as the page is open. */
import type { FoldedTurn, Message } from '@rivulet/client'
import { useRef } from 'react'
import { type Superseded, supersededBy } from './superseded.ts'

export function useSuperseded(messages: readonly Message[], turns: readonly FoldedTurn[]): readonly Superseded[] {
  const seen = useRef<{ messages: readonly Message[]; gone: readonly Superseded[] }>({ messages, gone: [] })
  const found = supersededBy(seen.current.messages, turns, messages)
  const isNew = (group: Superseded) =>
    !seen.current.gone.some(({ turnNumber, attempt }) => turnNumber === group.turnNumber && attempt === group.attempt)
  const added = found.filter(isNew)
  seen.current = { messages, gone: added.length > 0 ? [...seen.current.gone, ...added] : seen.current.gone }
  return seen.current.gone
}
