import { applyEvent, emptyState, messagesOf, restoreState, type TaskState } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { type Entry, snapshotOf, turnLog } from '../../test/sample-task.ts'
import { textOf } from './task-result.ts'
import { createNarrator } from './task-text.ts'

/** What is said of these entries, snapshots among them, and the fold of them. */
function narrate(entries: readonly (Entry | ReturnType<typeof snapshotOf>)[], firstTurn = 1): { pieces: string[]; state: TaskState } {
  const narrator = createNarrator(() => firstTurn)
  let state = emptyState
  const pieces = entries.flatMap(({ cursor, event }) => {
    if (event.type === 'snapshot') state = restoreState(cursor, { ...event, status: event.task.status })
    else state = applyEvent(state, event, cursor)
    return narrator.tell({ ...event, cursor }, state)
  })
  return { pieces, state }
}

describe('the words', () => {
  test('come as they are said', () => {
    expect(narrate(turnLog(1, [['one ', 'two ', 'three']])).pieces).toEqual(['one ', 'two ', 'three'])
  })

  test('of two messages stand apart, as in the result', () => {
    const { pieces, state } = narrate(turnLog(1, [['Let me see', '.'], [], ['Yes', '.']]))
    expect(pieces).toEqual(['Let me see', '.', '\n\n', 'Yes', '.'])
    expect(pieces.join('')).toBe(textOf(messagesOf(state)))
  })

  test('of messages that are said at the same time come one after the other', () => {
    const [queued, started, open, ...rest] = turnLog(1, [
      ['a1 ', 'a2'],
      ['b1 ', 'b2'],
    ])
    const first = rest.filter(({ event }) => 'index' in event && event.index === 0)
    const second = rest.filter(({ event }) => 'index' in event && event.index === 1)
    const mixed = [
      queued,
      started,
      open,
      ...second.slice(0, 1),
      ...first.slice(0, 1),
      ...second.slice(1, 2),
      ...first.slice(1),
      ...second.slice(2),
    ]
    const renumbered = mixed.flatMap((entry, place) => (entry ? [{ ...entry, cursor: `11-${place + 1}` as const }] : []))
    expect(narrate(renumbered).pieces.join('')).toBe('a1 a2\n\nb1 b2')
  })

  test('of a snapshot are yielded as far as they are, and then continue', () => {
    const log = turnLog(1, [['one ', 'two ', 'three']])
    expect(narrate([snapshotOf(log.slice(0, 5)), ...log.slice(5)]).pieces).toEqual(['one two ', 'three'])
  })

  test('of earlier turns, and of the user, are left out', () => {
    const logs = [...turnLog(1, [['first']]), ...turnLog(2, [['second']], { firstIndex: 1 })]
    expect(narrate(logs, 2).pieces).toEqual(['second'])
    expect(narrate([snapshotOf(logs)], 2).pieces).toEqual(['second'])
    const [, started] = logs
    const input = { ...messagesOf(narrate(logs).state)[0], author: 'user', index: 0 }
    const asked = { cursor: '99-1', event: { ...started?.event, turn: 3, firstIndex: 1, input } } as Entry
    expect(narrate([asked]).pieces).toEqual([])
  })
})

describe('text that is sent again', () => {
  const first = turnLog(1, [['one ', 'two ', 'three']], { ending: null })

  test('by a snapshot or a reopened log goes on where it was', () => {
    const log = turnLog(1, [['one ', 'two ', 'three']])
    const gap = snapshotOf(log.slice(0, 5), 'gap')
    expect(narrate([...log.slice(0, 5), gap, ...log.slice(5)]).pieces.join('')).toBe('one two three')
    const reopened = turnLog(1, [['one two ', 'three', ' four']], { attempt: 2 })
    expect(narrate([...first, ...reopened]).pieces.join('')).toBe('one two three four')
  })

  test('by an attempt with other text is yielded from its beginning, after a blank line', () => {
    const other = turnLog(1, [['one ', 'more'], ['end']], { attempt: 2 })
    expect(narrate([...first, ...other]).pieces.join('')).toBe('one two three\n\none more\n\nend')
  })

  test('by an override that goes on is not repeated, by another one it is', () => {
    const [, , , ...said] = first
    const at = said.at(-1)?.event
    const override = (text: string): Entry => ({
      cursor: '11-90',
      event: {
        type: 'message.replaced',
        task: at?.task ?? '',
        turn: 1,
        attempt: 1,
        at: 1,
        index: 0,
        content: { type: 'text', text, format: 'plain' },
      },
    })
    expect(narrate([...first, override('one two three four')]).pieces.join('')).toBe('one two three four')
    expect(narrate([...first, override('none')]).pieces.join('')).toBe('one two three\n\nnone')
    expect(narrate([...first, override('one')]).pieces.join('')).toBe('one two three')
  })
})
