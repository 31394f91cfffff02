/** The states of a writer: on their own under any order of changes, and in a writer whose log returns any outcome at any time. */
import type { AppendResult } from '@rivulet/broker'
import { delta, type Event } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTurnWriter } from './turn-writer.ts'
import { changeState, firstState, isBusy, maySend, stoppedOf, type WriterChange } from './writer-state.ts'

const lives: string[] = ['silent', 'speaking', 'ended', 'stopped', 'superseded']

const anyChange: fc.Arbitrary<WriterChange> = fc.oneof(
  fc.constantFrom('speaking', 'ended', 'superseded', 'idle', 'sending', 'moving', 'paused', 'resumed').map((to): WriterChange => ({ to })),
  fc.nat().map((reason): WriterChange => ({ to: 'stopped', reason })),
  fc.integer({ min: 1, max: 9 }).map((entries): WriterChange => ({ to: 'appended', entries })),
  fc.integer({ min: 2, max: 9 }).map((epoch): WriterChange => ({ to: 'epoch', epoch })),
)

const anyState = fc.array(anyChange, { maxLength: 12 }).map(changes => changes.reduce(changeState, firstState(1)))

test('a life never goes back, keeps its first reason, and is at least where the change leads', () => {
  fc.assert(
    fc.property(anyState, anyChange, (state, change) => {
      const next = changeState(state, change)
      const place = (at: string) => lives.indexOf(at)
      expect(place(next.life.at)).toBeGreaterThanOrEqual(Math.max(place(state.life.at), place(change.to)))
      const stopped = stoppedOf(state)
      if (stopped) expect(stoppedOf(next)?.reason).toBe(stopped.reason)
      expect(changeState(next, change).life).toEqual(next.life)
    }),
  )
})

test('a log grows only while a batch is under way, and changes its epoch only while it moves; then it is empty', () => {
  fc.assert(
    fc.property(anyState, anyChange, (state, change) => {
      const { log } = state
      const next = changeState(state, change).log
      if (next.epoch !== log.epoch) expect([log.at, next.appended, next.at]).toEqual(['moving', 0, 'moving'])
      else if (next.appended > log.appended) expect(log.at).toBe('sending')
      else if (next.appended < log.appended) expect(log.at).toBe('moving')
      if (next.at === 'sending' && log.at !== 'sending') expect(log.at).toBe('idle')
    }),
  )
})

test('a batch may leave only while nothing is under way, nothing is paused, and the writer has not stopped', () => {
  fc.assert(
    fc.property(anyState, state => {
      expect(maySend(state)).toBe(state.log.at === 'idle' && !state.isPaused && stoppedOf(state) === null)
      expect(isBusy(changeState(state, { to: 'idle' }))).toBe(false)
    }),
  )
})

type Step = { say: string } | { end: true } | { stop: number } | { pause: boolean } | { reopen: true } | { tick: number }

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('a', 'b', 'c').map(say => ({ say })) },
  { weight: 1, arbitrary: fc.constant({ end: true as const }) },
  { weight: 1, arbitrary: fc.nat(9).map(stop => ({ stop })) },
  { weight: 1, arbitrary: fc.boolean().map(pause => ({ pause })) },
  { weight: 1, arbitrary: fc.constant({ reopen: true as const }) },
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 5 }).map(tick => ({ tick })) },
)

const anyResult = fc.constantFrom<AppendResult[]>('ok', 'ok', 'ok', 'duplicate', 'gap', 'missing', 'fenced', 'closed', 'full')

test('whatever the log returns, output is taken only while open, sent by one append at a time, and is in the log once when drained', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 20 }), fc.array(anyResult, { maxLength: 12 }), async (steps, results) => {
      const logs = new Map<number, Event[]>()
      let epoch = 2
      let lost = 0
      let underWay = 0
      /** What each append begins with: how many are under way, the epoch beyond the current one, the entry beyond those in the log. */
      const appends: object[] = []
      const moves: Promise<void>[] = []
      const writer = createTurnWriter({
        turn: { task: '01890000-0000-7000-8000-000000000000', turn: 1, attempt: 1, firstIndex: 0 },
        epoch,
        appender: {
          append: async append => {
            underWay += 1
            appends.push({ underWay, epoch: append.epoch - epoch, entry: append.first - (logs.get(epoch)?.length ?? 0) })
            await null
            underWay -= 1
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
        else if ('pause' in step) writer.pause(step.pause)
        else if ('reopen' in step) moves.push(writer.reopen().catch(() => {}))
        else for (let i = 0; i < step.tick; i += 1) await null
        expect(writer.isOver() || !wasOver).toBe(true)
      }
      writer.pause(false)
      await Promise.all(moves)
      const isDrained = await writer.drain().then(
        () => true,
        () => false,
      )
      for (const append of appends) expect(append).toEqual({ underWay: 1, epoch: 0, entry: 1 })
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
