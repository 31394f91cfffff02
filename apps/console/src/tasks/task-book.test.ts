import type { TaskSummary } from '@rivulet/client'
import { describe, expect, test } from 'vitest'
import { mergePage, type TaskBook } from './task-book.ts'

function task(id: string, fields: Partial<TaskSummary> = {}): TaskSummary {
  const at = '2026-01-01T00:00:00.000Z'
  return { id, agent: 'echo', status: 'running', metadata: {}, turns: 1, ranMs: 0, tokens: 0, createdAt: at, updatedAt: at, ...fields }
}

const tasks = (...ids: string[]) => ids.map(id => task(id))
const idsOf = ({ tasks }: TaskBook) => tasks.map(({ id }) => id).join(' ')

describe('the book of tasks', () => {
  const first = mergePage(null, { data: tasks('9', '8', '7'), nextCursor: '7' }, null)
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

  test('keeps what it knows below a page that a search ended early', () => {
    const later = mergePage(both, { data: [], nextCursor: '7' }, null)
    expect([idsOf(later), later.nextCursor]).toEqual(['6 5 4', '4'])
    expect(idsOf(mergePage(both, { data: tasks('B'), nextCursor: 'A' }, null))).toBe('B 9 8 7 6 5 4')
  })

  test('searches older tasks after an empty page, and no place twice', () => {
    const start = mergePage(null, { data: [], nextCursor: '5' }, null)
    expect([idsOf(start), start.nextCursor]).toEqual(['', '5'])
    const deeper = mergePage(start, { data: [], nextCursor: '3' }, '5')
    expect([idsOf(deeper), deeper.nextCursor]).toEqual(['', '3'])
    expect(mergePage(deeper, { data: [], nextCursor: '6' }, null).nextCursor).toBe('3')
    const whole = mergePage(deeper, { data: tasks('2'), nextCursor: null }, '3')
    const refreshed = mergePage(whole, { data: [], nextCursor: '6' }, null)
    expect([idsOf(refreshed), refreshed.nextCursor]).toEqual(['2', null])
  })

  test('has more to load where older tasks came to match, and fill a page with the known ones', () => {
    const whole = mergePage(null, { data: tasks('9'), nextCursor: null }, null)
    expect(mergePage(whole, { data: tasks('9', '8', '7'), nextCursor: '7' }, null).nextCursor).toBe('7')
  })

  test('drops a page from below a place where it began anew', () => {
    const later = mergePage(both, { data: tasks('F', 'E', 'D'), nextCursor: 'D' }, null)
    expect(mergePage(later, { data: tasks('3'), nextCursor: null }, '4')).toBe(later)
  })

  test('keeps the object of a task that has not changed', () => {
    const later = mergePage(both, { data: [task('9'), task('8', { status: 'failed' }), task('7')], nextCursor: '7' }, null)
    expect(later.tasks.map((task, place) => task === both.tasks[place])).toEqual([true, false, true, true, true, true])
  })
})
