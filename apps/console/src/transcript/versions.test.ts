import type { FoldedTurn, Message } from '@rivulet/client'
import { expect, test } from 'vitest'
import { rowsOf } from './rows.ts'
import { foldVersions, versionsOf } from './versions.ts'

const turns = (['completed', 'discarded', 'discarded', 'completed', 'discarded'] as const).map(
  (status, place) => ({ number: place + 1, status, attempt: 1, startedAt: '2026-01-01T00:00:00.000Z' }) as FoldedTurn,
)
const messages = turns.map(
  ({ number }, index) => ({ index, turn: number, attempt: 1, author: 'agent', content: { type: 'text' } }) as Message,
)

test('discarded turns are versions of the turn after them; without one, they stay', () => {
  expect(Object.fromEntries(versionsOf(turns))).toEqual({ 2: [2, 3, 4], 3: [2, 3, 4], 4: [2, 3, 4] })
})

test('one version is shown, below the choice of it', () => {
  const rows = rowsOf(messages, turns, { isFromStart: true, isToEnd: true })
  const shown = (chosen: ReadonlyMap<number, number>) =>
    foldVersions(rows, turns, chosen).flatMap((row): (number | readonly number[])[] =>
      row.kind === 'message' ? [row.message.turn] : row.kind === 'versions' ? [row.numbers] : [],
    )
  expect(shown(new Map())).toEqual([1, [2, 3, 4], 4, 5])
  expect(shown(new Map([[4, 2]]))).toEqual([1, [2, 3, 4], 2, 5])
})
