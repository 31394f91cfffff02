import type { TaskSummary } from '@rivulet/client'
import { describe, expect, test } from 'vitest'
import { emptyBook, mergePage, type TaskBook } from './task-book.ts'

function task(id: string, fields: Partial<TaskSummary> = {}): TaskSummary {
  const at = '2026-01-01T00:00:00.000Z'
  return { id, agent: 'echo', status: 'running', metadata: {}, turns: 1, ranMs: 0, tokens: 0, createdAt: at, updatedAt: at, ...fields }
}

const tasks = (...ids: string[]) => ids.map(id => task(id))
const idsOf = ({ tasks }: TaskBook) => tasks.map(({ id }) => id).join(' ')

describe('the book of tasks', () => {
  const first = mergePage(emptyBook, { data: tasks('9', '8', '7'), nextCursor: '7' }, null)
  const both = mergePage(first, { data: tasks('6', '5', '4'), nextCursor: '4' }, '7')

  test('is pages in a row', () => {
    expect([idsOf(both), both.nextCursor]).toEqual(['9 8 7 6 5 4', '4'])
    expect(mergePage(both, { data: tasks('3'), nextCursor: null }, '4').nextCursor).toBeNull()
  })

  test('takes in what is new at the top, and keeps what a page does not speak of', () => {
    const later = mergePage(both, { data: tasks('B', 'A', '9'), nextCursor: '9' }, null)
    expect([idsOf(later), later.nextCursor]).toEqual(['B A 9 8 7 6 5 4', '4'])
  })

  test('forgets what a page says is gone', () => {
    expect(idsOf(mergePage(both, { data: tasks('6', '4'), nextCursor: '4' }, '7'))).toBe('9 8 7 6 4')
    expect(idsOf(mergePage(both, { data: [], nextCursor: null }, null))).toBe('')
  })

  test('has no hole: where more is new than a page holds, it begins anew', () => {
    const later = mergePage(both, { data: tasks('F', 'E', 'D'), nextCursor: 'D' }, null)
    expect([idsOf(later), later.nextCursor]).toEqual(['F E D', 'D'])
  })

  test('keeps the object of a task that has not changed', () => {
    const later = mergePage(both, { data: [task('9'), task('8', { status: 'failed' }), task('7')], nextCursor: '7' }, null)
    expect(later.tasks.map((task, place) => task === both.tasks[place])).toEqual([true, false, true, true, true, true])
  })
})
