/** The laws of everything that a composer writes, tested on random attempts. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { outcomeOf, perform, play } from '../../test/histories.ts'
import { fold, logOf, overTheWire, task, withoutTimes } from '../../test/logs.ts'
import { type AttemptPlan, attemptPlans, cutBytes, cutText, limits, taskPlans } from '../../test/plans.ts'
import { type Delta, isTextDelta } from '../events/delta.ts'
import { type Event, parseEvent } from '../events/event.ts'
import type { Update } from '../events/update.ts'
import { base64Of } from '../values/base64.ts'
import { findJsonFault } from '../values/json.ts'
import { messagesOf } from './task-fold.ts'
import { createTurnComposer, type TurnComposer } from './turn-composer.ts'

const runs = { numRuns: 100 }
const cuts = fc.array(fc.nat(40), { minLength: 1, maxLength: 8 })
const turn = { task, turn: 2, attempt: 1, firstIndex: 5 }
const started: Event = { type: 'turn.started', task, turn: 2, attempt: 1, firstIndex: 5, at: 1 }

test('a reader folds the same messages as the plain implementation, and ignores no event', () => {
  fc.assert(
    fc.property(taskPlans, plans => {
      const { log, attempts } = play(plans)
      const state = fold(overTheWire(log))
      expect(state.discarded).toBe(0)
      for (const { plain, differences, isLast, firstIndex } of attempts) {
        expect(differences).toEqual([])
        if (!isLast) continue
        const folded = messagesOf(state).slice(firstIndex, firstIndex + plain.messages().length)
        const comparable = folded.map(({ index, status, content, metadata }) => ({ index: index - firstIndex, status, content, metadata }))
        expect(comparable).toEqual(JSON.parse(JSON.stringify(plain.messages())))
      }
    }),
    runs,
  )
})

test('a reader folds the same messages as the composer, in every attempt', () => {
  fc.assert(
    fc.property(attemptPlans, plan => {
      const { composer, events } = performed(plan)
      const read = messagesOf(fold(overTheWire(logOf([started, ...events]))))
      expect(JSON.stringify(read)).toBe(JSON.stringify(composer.messages()))
    }),
    runs,
  )
})

test('a composer that adopts the events of another one continues in its place', () => {
  fc.assert(
    fc.property(attemptPlans, plan => {
      const { composer, events } = performed(plan)
      const heir = createTurnComposer(turn, { limits, now: () => 1 })
      for (const event of overTheWire(logOf(events))) heir.adopt(event.event)
      const place = (one: TurnComposer) => [one.messages(), one.nextIndex(), one.state()]
      expect(JSON.stringify(place(heir))).toBe(JSON.stringify(place(composer)))
      expect(heir.rewrite().map(withoutTime)).toEqual(composer.rewrite().map(withoutTime))
    }),
    runs,
  )
})

test('a composer that undoes what it has composed since a mark continues as if it had never composed it', () => {
  fc.assert(
    fc.property(attemptPlans, fc.nat(40), (plan, choice) => {
      const { updates } = performed(plan)
      const markedAt = choice % (updates.length + 1)
      const composer = createTurnComposer(turn, { limits, now: () => 1_700_000_000_000 })
      composedFrom(composer, updates.slice(0, markedAt))
      const place = () => JSON.stringify([composer.messages(), composer.nextIndex(), composer.room(), composer.discarded()])
      const before = place()
      const undo = composer.mark()
      const once = composedFrom(composer, updates.slice(markedAt))
      undo()
      expect(place()).toBe(before)
      expect(composedFrom(composer, updates.slice(markedAt))).toEqual(once)
    }),
    runs,
  )
})

test('every composed event can be stored: it is well formed, within the limits, and unchanged by a trip through JSON', () => {
  fc.assert(
    fc.property(taskPlans, plans => {
      const events = play(plans).log.map(({ event }) => event)
      expect(events.map(event => parseEvent(JSON.parse(JSON.stringify(event))))).toEqual(events)
      expect(findJsonFault(events, { jsonDepth: 64, jsonItems: 10_000 })?.code).not.toBe('invalid_characters')
      const sizes = events.map(event => (event.type === 'message.delta' ? bytesOf(event.delta) : 0))
      expect(Math.max(...sizes)).toBeLessThanOrEqual(limits.deltaBytes)
    }),
    runs,
  )
})

test('a turn never exceeds its output limit, and closing it never fails because of the limit', () => {
  fc.assert(
    fc.property(attemptPlans, fc.nat(120), (plan, turnBytes) => {
      const composer = createTurnComposer(turn, { limits: { ...limits, turnBytes } })
      const events: Event[] = []
      perform(plan, composer, composed => events.push(...composed))
      const sizes = events.map(event => (event.type === 'message.delta' ? bytesOf(event.delta) : 0))
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(turnBytes)
      expect(JSON.stringify(messagesOf(fold(logOf([started, ...events]))))).toBe(JSON.stringify(composer.messages()))
      expect(composer.messages().filter(message => message.status === 'streaming')).toEqual([])
    }),
    runs,
  )
})

test('the same output in other pieces, cut within characters and base64 groups, gives the same messages', () => {
  fc.assert(
    fc.property(attemptPlans, cuts, (plan, at) => {
      const updates = performed(plan).updates.filter(update => !isTooMuch(update))
      const whole = messagesAfter(updates, plan.ending)
      expect(
        messagesAfter(
          updates.flatMap(update => cutUpdate(update, at)),
          plan.ending,
        ),
      ).toEqual(whole)
    }),
    runs,
  )
})

test('a log that was lost and rewritten folds to the same messages, for old readers and new ones', () => {
  fc.assert(
    fc.property(attemptPlans, fc.nat(40), (plan, choice) => {
      const { updates } = performed(plan)
      const lostAt = choice % (updates.length + 1)
      const composer = createTurnComposer(turn, { limits })
      const early = composedFrom(composer, updates.slice(0, lostAt))
      const rewritten = composer.rewrite()
      const late = composedFrom(composer, updates.slice(lostAt))
      if (plan.ending !== 'lost') late.push(...composer.closeAll(plan.ending))

      const before = fold(logOf([started, ...early], 1))
      const reopened = logOf([started, ...rewritten], 2)
      for (const reader of [fold(reopened), fold(reopened, before)]) {
        expect(withoutTimes(messagesOf(reader))).toEqual(withoutTimes(messagesOf(before)))
      }
      const undisturbed = messagesOf(fold(logOf(late, 2), before))
      for (const reader of [fold(logOf([started, ...rewritten, ...late], 2)), fold(logOf([started, ...rewritten, ...late], 2), before)]) {
        expect(withoutTimes(messagesOf(reader))).toEqual(withoutTimes(undisturbed))
        expect(reader.discarded).toBe(0)
      }
    }),
    runs,
  )
})

test('per index there is at most one start, then deltas, then exactly one close; indexes open in order', () => {
  fc.assert(
    fc.property(attemptPlans, plan => {
      const lives = new Map<number, string>()
      for (const event of performed(plan).events) {
        if (event.type === 'custom' || !('index' in event)) continue
        if (!lives.has(event.index)) expect(event.index).toBe(turn.firstIndex + lives.size)
        lives.set(event.index, `${lives.get(event.index) ?? ''} ${event.type.slice('message.'.length)}`)
      }
      for (const life of lives.values()) expect(life).toMatch(/^( started( delta)*( finished| replaced)| replaced)$/)
    }),
    runs,
  )
})

function performed(plan: AttemptPlan): { composer: TurnComposer; events: Event[]; updates: Update[] } {
  const composer = createTurnComposer(turn, { limits, now: () => 1_700_000_000_000 })
  const events: Event[] = []
  const { updates } = perform(plan, composer, composed => events.push(...composed))
  return { composer, events, updates }
}

function composedFrom(composer: TurnComposer, updates: readonly Update[]): Event[] {
  const events: Event[] = []
  for (const update of updates) outcomeOf(update, composer, composed => events.push(...composed))
  return events
}

function messagesAfter(updates: readonly Update[], ending: AttemptPlan['ending']) {
  const composer = createTurnComposer(turn, { limits })
  composedFrom(composer, updates)
  if (ending !== 'lost') composer.closeAll(ending)
  return withoutTimes(composer.messages())
}

function cutUpdate(update: Update, at: readonly number[]): Update[] {
  return update.type === 'delta' ? cutDelta(update.delta, at).map(delta => ({ ...update, delta })) : [update]
}

function cutDelta(delta: Delta, at: readonly number[]): Delta[] {
  if (isTextDelta(delta)) return cutText(delta.text, at).map(text => ({ ...delta, text }))
  if (delta.type !== 'media') return [delta]
  const whole = Uint8Array.from(atob(delta.bytes), byte => byte.charCodeAt(0))
  return cutBytes(whole, at).map(piece => ({ type: 'media', bytes: base64Of(piece) }))
}

/** A piece of an update that is rejected as a whole may be accepted. */
function isTooMuch(update: Update): boolean {
  return update.type === 'delta' && isTextDelta(update.delta) && update.delta.text.length > limits.turnBytes
}

/** Text or bytes; values and maps are not cut. */
function bytesOf(delta: Delta): number {
  if (isTextDelta(delta)) return new TextEncoder().encode(delta.text).length
  return delta.type === 'media' ? atob(delta.bytes).length : 0
}

function withoutTime({ at: _, ...event }: Event): Omit<Event, 'at'> {
  return event
}
