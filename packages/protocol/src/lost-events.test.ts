/** What a reader notices of a log that lost an entry. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { play } from '../test/histories.ts'
import { type Entry, fold, statesOf } from '../test/logs.ts'
import { taskPlans } from '../test/plans.ts'
import { channelOf } from './delta.ts'
import { RivuletError } from './errors.ts'
import type { EventOf } from './event.ts'
import { messageAt, type TaskState } from './task-fold.ts'

/*
 * What precisely is noticed of a lost delta: the next delta of its channel is refused with `offset_mismatch`. Where there is none before the
 * message is closed, replaced or dropped, the message is another one until then; and for good where it was closed and is not JSON, in which
 * a space may be missing.
 */
test('a lost delta is noticed by the next one of its channel; without one, the message differs up to its close', () => {
  fc.assert(
    fc.property(taskPlans, fc.nat(200), (plans, choice) => {
      const { log } = play(plans)
      const candidates = log.flatMap(({ event }, position) =>
        event.type === 'message.delta' && isAppending(event) ? [{ position, event }] : [],
      )
      const candidate = candidates[choice % candidates.length]
      fc.pre(candidate !== undefined)
      const { position, event: lost } = candidate
      const states = statesOf(log)
      const verdict = log.findIndex((entry, i) => i > position && decides(entry, lost))
      const end = verdict === -1 ? log.length : verdict

      const state = fold(log.slice(position + 1, end), states[position])
      expect(JSON.stringify(contentAt(state, lost.index))).not.toBe(JSON.stringify(contentAt(states[end], lost.index)))
      const entry = log[end]
      if (entry?.event.type === 'message.delta' && entry.event.delta.type !== 'data') {
        expect(codeOf(() => fold([entry], state))).toBe('offset_mismatch')
      }
      if (entry?.event.type === 'message.finished' && !/data_json|tool_request/.test(lost.delta.type)) {
        expect(contentAt(fold([entry], state), lost.index)).not.toEqual(contentAt(states[end + 1], lost.index))
      }
    }),
    { numRuns: 800 },
  )
})

test('a lost start is noticed: what follows at its index and above is passed over and counted', () => {
  fc.assert(
    fc.property(taskPlans, fc.nat(200), (plans, choice) => {
      const { log } = play(plans)
      const candidates = log.flatMap(({ event }, position) => (event.type === 'message.started' ? [{ position, index: event.index }] : []))
      const candidate = candidates[choice % candidates.length]
      fc.pre(candidate !== undefined)
      const { position, index } = candidate
      const rest = log.slice(position + 1)
      const restart = rest.findIndex(({ event }) => event.type === 'turn.started')
      const until = rest.slice(0, restart === -1 ? rest.length : restart)
      const above = until.filter(({ event }) => event.type.startsWith('message.') && 'index' in event && (event.index ?? 0) >= index)
      // A full message needs no start: it stands at the index by itself.
      fc.pre(!above.some(({ event }) => event.type === 'message.replaced'))
      expect(fold([...log.slice(0, position), ...until]).discarded).toBe(above.length)
    }),
    { numRuns: 300 },
  )
})

function isAppending({ delta }: EventOf<'message.delta'>): boolean {
  return delta.type !== 'data' && delta.type !== 'metadata'
}

/** The event at which it shows that a delta was lost, or at which it no longer matters. */
function decides({ event }: Entry, lost: EventOf<'message.delta'>): boolean {
  if (event.type === 'turn.started') return event.firstIndex <= lost.index
  if (event.type === 'message.finished' || event.type === 'message.replaced') return event.index === lost.index
  if (event.type !== 'message.delta' || event.index !== lost.index) return false
  return event.delta.type === 'data' || channelOf(event.delta) === channelOf(lost.delta)
}

function contentAt(state: TaskState | undefined, index: number) {
  return state && messageAt(state, index)?.content
}

function codeOf(act: () => unknown): string | null {
  try {
    act()
  } catch (error) {
    return error instanceof RivuletError ? error.code : String(error)
  }
  return null
}
