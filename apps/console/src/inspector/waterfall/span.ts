/** A span of the waterfall: one thing that took time. */
import type { Content, FoldedTurn, Message, Turn } from '@rivulet/client'

export type SpanKind = 'turn' | 'queue' | 'attempt' | 'back-off' | 'model' | 'message' | 'tool' | 'step' | 'wait' | 'child'

export type Outcome = 'open' | 'good' | 'bad' | 'stopped'

export type Span = {
  /** Unique in its task. */
  key: string
  kind: SpanKind
  label: string
  depth: number
  turn: number
  /** 0 for a span of the whole turn. */
  attempt: number
  /** Whether it is of an attempt before the latest, whose messages the transcript does not have: others have their indexes. */
  isEarlier: boolean
  from: number
  /** Where what counts begins: before it, a model had not answered yet, or the arguments of a tool were written. */
  begins: number
  /** Null while it is running. */
  to: number | null
  outcome: Outcome
  model: string | null
  tokens: number
  /** In US dollars; null where it is not known. */
  cost: number | null
  error: NonNullable<Turn['error']> | null
  input: readonly Content[]
  output: readonly Content[]
  /** The index of its message, or of its first one; null if it has none. */
  message: number | null
  /** The task that is waited for. */
  child: string | null
  /** The child of which it is a part; null for a span of the page's own task. */
  task: string | null
}

type Required = 'key' | 'kind' | 'label' | 'depth' | 'turn' | 'from' | 'to' | 'outcome'

export function newSpan(given: Pick<Span, Required> & Partial<Span>): Span {
  return {
    ...{ attempt: 0, isEarlier: false, begins: given.from, model: null, tokens: 0, cost: null, error: null },
    ...{ input: [], output: [], message: null, child: null, task: null },
    ...given,
  }
}

export const outcomes: Record<FoldedTurn['status'] | Message['status'] | 'lost', Outcome> = {
  ...{ queued: 'open', running: 'open', waiting: 'open', streaming: 'open', completed: 'good', complete: 'good' },
  ...{ failed: 'bad', lost: 'bad', canceled: 'stopped', aborted: 'stopped', discarded: 'stopped' },
} as const

export function timeOf(iso: string | undefined): number | null {
  return iso === undefined ? null : Date.parse(iso)
}
