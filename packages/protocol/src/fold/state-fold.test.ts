/** The law of a task's state: what a reader folds from the log is what the attempt that ended each turn has made, whatever was tried before it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fold, logOf, overTheWire, task } from '../../test/logs.ts'
import type { State, StateChange } from '../entities/state.ts'
import type { Event } from '../events/event.ts'
import { maxStateBytes } from '../limits.ts'
import type { Json } from '../values/json.ts'
import { mergePatch } from '../values/merge-patch.ts'
import { noState } from './state-fold.ts'
import { emptyState } from './task-fold.ts'
import { type ComposedTurn, createTurnComposer, type TurnComposer } from './turn-composer.ts'

const json: fc.Arbitrary<Json> = fc.jsonValue({ maxDepth: 2 }).map(value => JSON.parse(JSON.stringify(value)))
const key = fc.constantFrom('a', 'b', 'c')
const change: fc.Arbitrary<StateChange> = fc.oneof(
  json.map(value => ({ value })),
  fc.dictionary(key, json, { maxKeys: 3, noNullPrototype: true }).map(patch => ({ patch })),
)
/** `parks`: after so many changes the turn parks, and its handler runs again from the top. `reopens`: after so many the log is lost. */
const attempt = fc.record({
  changes: fc.array(change, { maxLength: 5 }),
  parks: fc.option(fc.nat(5)),
  diverges: fc.boolean(),
  reopens: fc.option(fc.nat(5)),
})
const turnPlan = fc.record({ attempts: fc.array(attempt, { minLength: 1, maxLength: 3 }), put: fc.option(json) })

describe('the state of a task', () => {
  test('is the fold of its log, with retries, parks, lost logs and changes between turns', () => {
    fc.assert(
      fc.property(fc.array(turnPlan, { minLength: 1, maxLength: 4 }), plans => {
        const events: Event[] = []
        let committed: State = noState
        for (const [i, { attempts, put }] of plans.entries()) {
          let made = committed
          for (const [k, plan] of attempts.entries()) {
            const about = { task, turn: i + 1, attempt: k + 1 }
            events.push({ type: 'turn.started', ...about, at: 1, firstIndex: 0, ...(committed.version > 0 && { state: committed }) })
            made = play(plan, { ...about, firstIndex: 0, state: committed }, events)
          }
          committed = made
          events.push({
            type: 'turn.finished',
            task,
            turn: i + 1,
            attempt: attempts.length,
            at: 1,
            status: 'completed',
            stopReason: 'stop',
          })
          expect(folded(events)).toEqual(committed)
          if (put === null) continue
          committed = { version: committed.version + 1, value: put }
          events.push({ type: 'state.changed', task, turn: i + 1, attempt: 0, at: 1, ...committed })
        }
        expect(folded(events)).toEqual(committed)
      }),
      { numRuns: 300 },
    )
  })

  test('is the same for a reader that joins by a snapshot at any position', () => {
    const composer = createTurnComposer({ task, turn: 1, attempt: 1, firstIndex: 0 })
    const changes: StateChange[] = [{ value: { n: 1 } }, { patch: { m: 2 } }, { patch: { n: null } }]
    const events: Event[] = [
      { type: 'turn.started', task, turn: 1, attempt: 1, at: 1, firstIndex: 0 },
      ...changes.flatMap(composer.changeState),
    ]
    const log = overTheWire(logOf(events))
    const last = fold(log).agentState
    expect(last).toEqual({ version: 3, value: { m: 2 } })
    for (const place of log.keys()) expect(fold(log.slice(place), fold(log.slice(0, place))).agentState).toEqual(last)
    // One that begins in the middle, without a snapshot, knows it from the next whole value on.
    expect(fold(log.slice(2)).agentState).toBeNull()
  })

  test('of more than 1 MiB is rejected, and the state before it stays', () => {
    const composer = createTurnComposer({ task, turn: 1, attempt: 1, firstIndex: 0 })
    composer.changeState({ value: 'x'.repeat(maxStateBytes - 2) })
    expect(() => composer.changeState({ value: 'x'.repeat(maxStateBytes - 1) })).toThrow(
      expect.objectContaining({ code: 'state_too_large' }),
    )
    expect(composer.state().version).toBe(1)
    expect(() => composer.changeState({ patch: [] as never })).toThrow(expect.objectContaining({ code: 'bad_call' }))
  })

  test('a patch that does not follow the version before it shows that an event was lost', () => {
    const state = { ...emptyState, agentState: { version: 3, value: {} } }
    const lost: Event = { type: 'state.changed', task, turn: 1, attempt: 1, at: 1, version: 5, patch: { a: 1 } }
    expect(() => fold(logOf([lost]), state)).toThrow(expect.objectContaining({ code: 'offset_mismatch' }))
  })
})

type Plan = { changes: StateChange[]; parks: number | null; diverges: boolean; reopens: number | null }

/** Plays an attempt as a worker does, and returns the state that a plain loop makes of the same changes. */
function play({ changes, parks, diverges, reopens }: Plan, begun: ComposedTurn, events: Event[]): State {
  const before = begun.state ?? noState
  let turn = begun
  let composer = createTurnComposer(turn)
  const run = (wanted: readonly StateChange[]) => {
    for (const [i, each] of wanted.entries()) {
      events.push(...composer.changeState(each))
      if (i === reopens) reopen(composer, turn, events)
    }
  }
  if (parks === null || parks > changes.length) {
    run(changes)
    return plain(before, changes)
  }
  run(changes.slice(0, parks))
  events.push(...composer.settleState())
  turn = { ...turn, keptState: composer.state() }
  composer = createTurnComposer(turn)
  const again = diverges ? changes.slice(1) : changes
  run(again)
  events.push(...composer.settleState())
  return plain(before, again)
}

/** The log is opened anew: the server tells the start and what was kept, the worker what it has said. */
function reopen(composer: TurnComposer, { turn, attempt, state, keptState }: ComposedTurn, events: Event[]): void {
  const common = { task, turn, attempt, at: 1 }
  events.push({ type: 'turn.started', ...common, firstIndex: 0, ...(state && state.version > 0 && { state }) })
  if (keptState) events.push({ type: 'state.changed', ...common, ...keptState })
  events.push(...composer.rewrite())
}

function plain(before: State, changes: readonly StateChange[]): State {
  return changes.reduce<State>(
    ({ version, value }, each) => ({ version: version + 1, value: 'patch' in each ? mergePatch(value, each.patch) : each.value }),
    before,
  )
}

function folded(events: readonly Event[]): State | null {
  return fold(overTheWire(logOf(events))).agentState
}
