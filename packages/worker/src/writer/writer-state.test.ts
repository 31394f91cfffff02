/** The states of a writer: on their own under any order of changes, and in a writer whose log returns any outcome at any time. */
import type { AppendResult } from '@rivulet/broker'
import { delta, type Event } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTurnWriter } from './turn-writer.ts'
import { changeState, stoppedOf, type WriterChange, type WriterState } from './writer-state.ts'

const order: WriterState['at'][] = ['open', 'ended', 'stopped', 'superseded']

const anyChange: fc.Arbitrary<WriterChange> = fc.oneof(
  fc.constant<WriterChange>({ to: 'ended' }),
  fc.nat().map((reason): WriterChange => ({ to: 'stopped', reason })),
  fc.constant<WriterChange>({ to: 'superseded' }),
)

test('a state never goes back, keeps its first reason, and is at least where the change leads', () => {
  fc.assert(
    fc.property(fc.array(anyChange, { maxLength: 12 }), changes => {
      let state: WriterState = { at: 'open' }
      for (const change of changes) {
        const next = changeState(state, change)
        expect(order.indexOf(next.at)).toBeGreaterThanOrEqual(Math.max(order.indexOf(state.at), order.indexOf(change.to)))
        const stopped = stoppedOf(state)
        if (stopped) expect(stoppedOf(next)?.reason).toBe(stopped.reason)
        expect(changeState(next, change).at).toBe(next.at)
        state = next
      }
    }),
  )
})

type Step = { say: string } | { end: true } | { stop: number } | { tick: number }

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('a', 'b', 'c').map(say => ({ say })) },
  { weight: 1, arbitrary: fc.constant({ end: true as const }) },
  { weight: 1, arbitrary: fc.nat(9).map(stop => ({ stop })) },
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 5 }).map(tick => ({ tick })) },
)

const anyResult = fc.constantFrom<AppendResult[]>('ok', 'ok', 'ok', 'duplicate', 'gap', 'missing', 'fenced', 'closed', 'full')

test('whatever the log returns, output is accepted only while open, sent only until it stops, and is in the log once when drained', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 20 }), fc.array(anyResult, { maxLength: 12 }), async (steps, results) => {
      const logs = new Map<number, Event[]>()
      let epoch = 2
      let lost = 0
      const writer = createTurnWriter({
        turn: { task: '01890000-0000-7000-8000-000000000000', turn: 1, attempt: 1, firstIndex: 0 },
        epoch,
        appender: {
          append: async append => {
            expect(append.epoch).toBe(epoch)
            expect(append.first).toBe((logs.get(epoch)?.length ?? 0) + 1)
            const result = results.shift() ?? 'ok'
            if (result !== 'ok' && result !== 'duplicate') return result
            logs.set(epoch, [...(logs.get(epoch) ?? []), ...append.entries.map(({ json }): Event => JSON.parse(json))])
            return result
          },
        },
        askReopen: async () => (epoch += 1),
        onFenced: () => {},
        onLost: () => (lost += 1),
      })
      let said = ''
      for (const step of steps) {
        const wasOver = writer.isOver()
        if ('say' in step) {
          if (wasOver) expect(() => writer.say(delta(0, step.say))).toThrow()
          else {
            writer.say(delta(0, step.say))
            said += step.say
          }
        } else if ('end' in step) writer.end('complete')
        else if ('stop' in step) writer.stop(new Error(`stop ${step.stop}`))
        else for (let i = 0; i < step.tick; i += 1) await null
        expect(writer.isOver() || !wasOver).toBe(true)
      }
      const isDrained = await writer.drain().then(
        () => true,
        () => false,
      )
      const log = logs.get(epoch) ?? []
      if (isDrained) expect(textOf(log)).toBe(said)
      else expect(said.startsWith(textOf(log))).toBe(true)
      if (isDrained) expect(writer.isSettled()).toBe(true)
      expect(lost).toBeLessThanOrEqual(1)
      if (writer.isSuperseded()) expect(isDrained).toBe(false)
    }),
    { numRuns: 300 },
  )
})

/** A new epoch begins with a message that already holds text. */
function textOf(events: readonly Event[]): string {
  return events
    .map(event => {
      if (event.type === 'message.delta' && event.delta.type === 'text') return event.delta.text
      return event.type === 'message.started' && event.content.type === 'text' ? event.content.text : ''
    })
    .join('')
}
