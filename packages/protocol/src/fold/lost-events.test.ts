/** How a reader detects that a log lost an entry. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { play } from '../../test/histories.ts'
import { type Entry, fold, statesOf } from '../../test/logs.ts'
import { taskPlans } from '../../test/plans.ts'
import { RivuletError } from '../errors.ts'
import { channelOf } from '../events/delta.ts'
import type { EventOf } from '../events/event.ts'
import { messageAt, type TaskState } from './task-fold.ts'

/*
 * After a lost delta, the next delta of its channel throws `offset_mismatch`. When the message is closed, replaced or dropped before such a
 * delta, the message differs until then. It stays different if it was closed, except for JSON, which is equal when only white space was
 * lost.
 */
test('the next delta of its channel reveals a lost delta; without one, the message differs until its close', () => {
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
    { numRuns: 100 },
  )
})

test('after a lost start, events at its index and above are ignored and counted', () => {
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
      // A full message needs no start.
      fc.pre(!above.some(({ event }) => event.type === 'message.replaced'))
      expect(fold([...log.slice(0, position), ...until]).discarded).toBe(above.length)
    }),
    { numRuns: 100 },
  )
})

function isAppending({ delta }: EventOf<'message.delta'>): boolean {
  return delta.type !== 'data' && delta.type !== 'metadata'
}

/** Whether this event reveals the lost delta, or makes it irrelevant. */
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
