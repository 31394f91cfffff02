/** Plays plans as workers and a server would: every attempt has its own epoch, and a plain turn receives the same updates. */
import {
  type Content,
  createTurnComposer,
  type Event,
  formatCursor,
  type Message,
  RivuletError,
  startingWith,
  type TurnComposer,
  type Update,
} from '../src/index.ts'
import { type Entry, task } from './logs.ts'
import { createPlainTurn, type PlainTurn } from './plain-turn.ts'
import { type AttemptPlan, limits, type TurnPlan } from './plans.ts'

/** One attempt as it was played. */
export type Attempt = {
  composer: TurnComposer
  plain: PlainTurn
  firstIndex: number
  /** No later attempt replaced its messages. */
  isLast: boolean
  updates: Update[]
  /** Updates for which the composer and the plain turn gave different outcomes. */
  differences: string[]
}
export type History = { log: Entry[]; attempts: Attempt[] }

export function play(turns: readonly TurnPlan[]): History {
  const history: History = { log: [], attempts: [] }
  let clock = 1_700_000_000_000
  let epoch = 1
  let seq = 0
  let next = 0

  for (const [i, { inputs, attempts }] of turns.entries()) {
    const [input] = inputs
    append([
      { type: 'turn.queued', task, turn: i + 1, attempt: 0, at: now(), ...(input && { input }), ...(inputs.length > 1 && { inputs }) },
    ])
    const firstIndex = next + inputs.length
    const inputIndex = next
    for (const [k, plan] of attempts.entries()) {
      epoch += 1
      seq = 0
      const about = { task, turn: i + 1, attempt: k + 1 }
      const at = now()
      const asked = inputs.map((content, k) => inputMessage(content, inputIndex + k, about, at))
      append([{ type: 'turn.started', ...about, at, firstIndex, ...startingWith(asked) }])
      const composer = createTurnComposer({ ...about, firstIndex }, { limits, now })
      history.attempts.push({ ...perform(plan, composer, append), composer, firstIndex, isLast: k === attempts.length - 1 })
    }
    const ending = attempts.at(-1)?.ending
    const status = ending === 'aborted' ? 'canceled' : ending === 'failed' ? 'failed' : 'completed'
    append([{ type: 'turn.finished', task, turn: i + 1, attempt: attempts.length, at: now(), status, stopReason: 'stop' }])
    next = firstIndex + (history.attempts.at(-1)?.composer.messages().length ?? 0)
  }
  return history

  function now(): number {
    clock += 1
    return clock
  }

  function append(events: Event[]): void {
    for (const event of events) {
      seq += 1
      history.log.push({ cursor: formatCursor(epoch, seq), event })
    }
  }
}

/** Plays an attempt; `picks` decides which message's update is next. */
export function perform(
  { messages, picks, ending }: AttemptPlan,
  composer: TurnComposer,
  append: (events: Event[]) => void,
): Pick<Attempt, 'plain' | 'updates' | 'differences'> {
  const plain = createPlainTurn(limits)
  const queues = messages.map(steps => steps.slice())
  const updates: Update[] = []
  const differences: string[] = []
  for (let i = 0; ; i += 1) {
    const opened = composer.messages().length
    const ready = queues.flatMap((queue, index) => (queue.length > 0 && index <= opened ? [index] : []))
    const index = ready[(picks[i] ?? 0) % ready.length] ?? -1
    const step = queues[index]?.shift()
    if (!step) break
    const update = step.index === undefined ? step : { ...step, index: step.index + index }
    updates.push(update)
    const expected = plain.apply(update)
    const outcome = outcomeOf(update, composer, append)
    if (outcome !== expected) differences.push(`${JSON.stringify(update)}: ${outcome} instead of ${expected}`)
  }
  if (ending !== 'lost') {
    append(composer.closeAll(ending, ending === 'failed' ? { code: 'agent_error', message: 'thrown' } : undefined))
    plain.close(ending)
  }
  return { plain, updates, differences }
}

/** The composer's outcome for an update, named as in the plain turn. */
export function outcomeOf(update: Update, composer: TurnComposer, append: (events: Event[]) => void): string {
  const before = composer.discarded()
  try {
    append(composer.compose(update))
  } catch (error) {
    if (error instanceof RivuletError) return error.code
    throw error
  }
  return composer.discarded() > before ? 'discarded' : 'accepted'
}

function inputMessage(content: Content, index: number, about: { task: string; turn: number; attempt: number }, at: number): Message {
  const { task, turn, attempt } = about
  const createdAt = new Date(at).toISOString()
  return { task, index, turn, attempt, author: 'user', content, metadata: {}, status: 'complete', createdAt }
}
