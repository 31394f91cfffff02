/**
 * The laws of every reader of every log, tested on random histories. The laws of the writer are in `turn-composer.laws.test.ts`, and what a
 * reader notices of a log with gaps is in `lost-events.test.ts`.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { play } from '../../test/histories.ts'
import { type Entry, fold, joined, seenOf, statesOf } from '../../test/logs.ts'
import { taskPlans } from '../../test/plans.ts'
import { messageSchema } from '../entities/entities.ts'
import { taskStatusSchema } from '../entities/status/status-schema.ts'
import { mergeDeltas } from '../events/delta.ts'
import { applyEvent, emptyState, messageAt, nextIndexOf, startedInputs, type TaskState } from './task-fold.ts'

const runs = { numRuns: 100 }
const coins = fc.array(fc.boolean(), { minLength: 20, maxLength: 20 })
const places = fc.array(fc.nat(200), { minLength: 4, maxLength: 4 })

test('the fold of any prefix is valid: entities parse, indexes have no gaps, and only the event’s own message changes', () => {
  fc.assert(
    fc.property(taskPlans, plans => {
      const { log } = play(plans)
      const states = statesOf(log)
      const faults = log.flatMap(({ event }, i) => faultsOf(event, states[i] ?? emptyState, states[i + 1] ?? emptyState))
      expect(faults).toEqual([])
    }),
    runs,
  )
})

test('merging adjacent deltas anywhere changes no fold', () => {
  fc.assert(
    fc.property(taskPlans, coins, (plans, choices) => {
      const { log } = play(plans)
      const merged = mergedLog(log, choices)
      expect(seenOf(fold(merged))).toBe(seenOf(fold(log)))
    }),
    runs,
  )
})

test('a snapshot at any position and the events after it give the same fold, also within JSON, bytes and characters', () => {
  fc.assert(
    fc.property(taskPlans, places, (plans, joins) => {
      const { log } = play(plans)
      const states = statesOf(log)
      const last = seenOf(states.at(-1) ?? emptyState)
      for (const place of joins) {
        const position = place % states.length
        expect(seenOf(fold(log.slice(position), joined(states[position] ?? emptyState)))).toBe(last)
      }
    }),
    runs,
  )
})

test('applying an event again, or reading again from an earlier position, changes nothing', () => {
  fc.assert(
    fc.property(taskPlans, places, (plans, steps) => {
      const { log } = play(plans)
      let state = emptyState
      for (const [i, { event, cursor }] of log.entries()) {
        state = applyEvent(state, event, cursor)
        expect(applyEvent(state, event, cursor)).toBe(state)
        const back = (steps[i % steps.length] ?? 0) % (i + 1)
        expect(fold(log.slice(back, i + 1), state)).toBe(state)
      }
    }),
    runs,
  )
})

test('applyEvent is pure: it changes neither earlier states nor events', () => {
  fc.assert(
    fc.property(taskPlans, plans => {
      const { log } = play(plans)
      const events = JSON.stringify(log)
      const kept: { state: TaskState; seen: string }[] = []
      let state = emptyState
      for (const { event, cursor } of log) {
        kept.push({ state, seen: seenOf(state) })
        state = applyEvent(state, event, cursor)
      }
      // Two continuations of one state do not affect each other either.
      for (const [i, past] of kept.entries()) fold(log.slice(i), past.state)
      for (const past of kept) expect(seenOf(past.state)).toBe(past.seen)
      expect(JSON.stringify(log)).toBe(events)
    }),
    { numRuns: 100 },
  )
})

/** The faults of the state after this event. Messages that the event did not change were checked before. */
function faultsOf(event: Entry['event'], before: TaskState, after: TaskState): string[] {
  const faults: string[] = []
  if (after.messagesFrom !== 0 || !taskStatusSchema.safeParse(after.status).success) faults.push(`the state after ${event.type}`)
  for (let index = 0; index < nextIndexOf(after); index += 1) {
    const accumulator = messageAt(after, index)
    if (accumulator === messageAt(before, index)) continue
    if (index < firstIndexOf(event)) faults.push(`${event.type} changed message ${index}`)
    if (accumulator?.message.index !== index) faults.push(`message ${index} has the index ${accumulator?.message.index}`)
    const parsed = messageSchema.safeParse(accumulator?.message)
    if (!parsed.success) faults.push(`message ${index}: ${parsed.error.message}`)
  }
  return faults
}

function firstIndexOf(event: Entry['event']): number {
  if (event.type === 'turn.started') return startedInputs(event)[0]?.index ?? event.firstIndex
  return event.type.startsWith('message.') && 'index' in event ? (event.index ?? 0) : Number.POSITIVE_INFINITY
}

/** Merges adjacent deltas according to `choices`. A merged entry has the first one's event and offset, and the last one's cursor. */
function mergedLog(log: readonly Entry[], choices: readonly boolean[]): Entry[] {
  const merged: Entry[] = []
  for (const [i, entry] of log.entries()) {
    const before = merged.at(-1)
    const both = before && choices[i % choices.length] ? mergedEvent(before.event, entry.event) : null
    if (both) merged.splice(-1, 1, { cursor: entry.cursor, event: both })
    else merged.push(entry)
  }
  return merged
}

function mergedEvent(first: Entry['event'], second: Entry['event']): Entry['event'] | null {
  if (first.type !== 'message.delta' || second.type !== 'message.delta' || first.index !== second.index) return null
  const delta = mergeDeltas(first.delta, second.delta)
  return delta && { ...first, delta }
}
