import { expect, test } from 'vitest'
import { seededRandom } from '../../../../test/support/agents/scripts.ts'
import { type FeedChange, type FeedState, type Ground, nextFeedState } from './feed-state.ts'

const grounds: readonly Ground[] = ['live', 'stale', 'rows']
const start: FeedState = { at: 'rest', source: { ground: 'rows', endCursor: null } }

test('a reading keeps its pushes until it is done, whatever the feed finds meanwhile', () => {
  forRandomChanges((before, change, after) => {
    if (before.at !== 'reading' || change.kind === 'read') return
    expect(after).toMatchObject({ at: 'reading', done: before.done })
    expect(after.at === 'reading' && after.pushed).toBe(before.pushed)
  })
})

test('only a load and a comparison with log or rows change what a feed stands on', () => {
  forRandomChanges((before, change, after) => {
    if (change.kind === 'reading' || change.kind === 'read') expect(after.source).toBe(before.source)
    else expect(after.at).toBe(before.at)
  })
})

test('a feed that was loaded anew knows no end of the log before it', () => {
  forRandomChanges((_, change, after) => {
    if (change.kind === 'loaded')
      expect(after.source).toEqual({ ground: change.ground, ...(change.ground !== 'live' && { endCursor: null }) })
  })
})

test('rows that agree never make a log out of rows, nor rows out of a log', () => {
  forRandomChanges((before, change, after) => {
    if (change.kind !== 'rows agree') return
    expect(after.source).toEqual({ ground: before.source.ground === 'rows' ? 'rows' : 'stale', endCursor: change.endCursor })
  })
})

function forRandomChanges(check: (before: FeedState, change: FeedChange, after: FeedState) => void): void {
  const random = seededRandom(7)
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T
  let state = start
  for (let i = 0; i < 2_000; i++) {
    const change = pick<FeedChange>([
      { kind: 'reading', done: Promise.resolve(), pushed: [] },
      { kind: 'read' },
      { kind: 'loaded', ground: pick(grounds) },
      { kind: 'log continues' },
      { kind: 'rows agree', endCursor: pick([null, '2-9']) },
    ])
    const after = nextFeedState(state, change)
    check(state, change, after)
    state = after
  }
}
