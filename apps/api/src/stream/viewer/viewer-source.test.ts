import type { SnapshotReason } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { seededRandom } from '../../../../../test/support/agents/scripts.ts'
import { nextSource, type SourceChange, type ViewerSource } from './viewer-source.ts'

const reasons: readonly SnapshotReason[] = ['join', 'gap', 'slow']

test('a snapshot that is due stays due, whatever happens, until it is sent or the page of the log shows a gap', () => {
  forRandomChanges((before, change, after) => {
    if (before.at === 'snapshot' && change.kind !== 'snapshot sent' && change.kind !== 'page read') expect(after.at).toBe('snapshot')
  })
})

test('a viewer that was sent nothing yet never gets another snapshot than that of its join by missing something', () => {
  forRandomChanges((before, change, after) => {
    if (change.kind === 'missed' && before.at === 'snapshot' && before.reason === 'join') expect(after).toEqual(before)
  })
})

test('whatever is missed while a snapshot waits, each promise that it waits for is counted once', () => {
  const started: ViewerSource = { at: 'ring' }
  const waiting = [
    { kind: 'awaiting', reason: 'gap' },
    { kind: 'missed', reason: 'slow' },
    { kind: 'awaiting', reason: 'slow' },
  ] as const
  const source = [...waiting, { kind: 'awaited' } as const].reduce<ViewerSource>(nextSource, started)
  expect(source).toEqual({ at: 'snapshot', reason: 'slow', waits: 1 })
  expect(nextSource(source, { kind: 'awaited' })).toEqual({ at: 'snapshot', reason: 'slow', waits: 0 })
})

test('a socket that drains replaces the source of a replay, because the replay that waits for its page has to notice', () => {
  const source: ViewerSource = { at: 'log', count: 20 }
  const after = nextSource(source, { kind: 'drained' })
  expect(after).toEqual(source)
  expect(after).not.toBe(source)
})

function forRandomChanges(check: (before: ViewerSource, change: SourceChange, after: ViewerSource) => void): void {
  const random = seededRandom(7)
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T
  let source: ViewerSource = { at: 'snapshot', reason: 'join', waits: 0 }
  for (let i = 0; i < 2_000; i++) {
    const change = pick(changesFrom(source, pick(reasons)))
    const after = nextSource(source, change)
    check(source, change, after)
    source = after
  }
}

function changesFrom(source: ViewerSource, reason: SnapshotReason): SourceChange[] {
  const always: SourceChange[] = [{ kind: 'missed', reason }, { kind: 'awaiting', reason }, { kind: 'drained' }, { kind: 'log read' }]
  if (source.at === 'log') return [...always, { kind: 'page read', next: 30 }, { kind: 'page read', next: null }]
  if (source.at === 'ring') return always
  return [...always, source.waits > 0 ? { kind: 'awaited' } : { kind: 'snapshot sent' }]
}
