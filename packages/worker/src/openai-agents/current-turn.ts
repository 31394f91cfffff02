/**
 * The turn of the running code. It is stored in the async context, so that one provider and one runner serve all turns of a process without
 * mixing their output.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Span } from '@rivulet/runtime/trace'
import type { Turn } from '../turn/turn.ts'
import type { MessageHandle } from '../writer/message-handle.ts'

/** A turn, and the tool calls that have been told in it. */
export type CurrentTurn = {
  readonly turn: Turn
  /** Calls that were asked for, by their id. */
  readonly calls: Set<string>
  /** The responses to them; null once closed. */
  readonly responses: Map<string, MessageHandle | null>
  /** The span of what runs: the turn's, or that of a call of the model. */
  readonly span: Span
  /** The spans of tools that run, by the id of their call. */
  readonly toolSpans: Map<string, Span>
}

const storage = new AsyncLocalStorage<CurrentTurn>()

/** A handler that models and hooks find their turn from: `defineAgent('assistant', inTurn(async turn => { … }))`. */
export function inTurn(handle: (turn: Turn) => Promise<void>): (turn: Turn) => Promise<void> {
  return turn => withTurn(turn, () => handle(turn))
}

/** The same for a part of a handler, such as a generator's: `await withTurn(turn, () => runner.run(…))`. */
export function withTurn<T>(turn: Turn, work: () => T): T {
  return storage.run({ turn, calls: new Set(), responses: new Map(), span: turn.span, toolSpans: new Map() }, work)
}

/** Runs `work` below a span of the turn. */
export function withSpan<T>(current: CurrentTurn, span: Span, work: () => T): T {
  return storage.run({ ...current, span }, work)
}

/** Null outside of a turn: there models and hooks are as they were. */
export function currentTurn(): CurrentTurn | null {
  return storage.getStore() ?? null
}
