/**
 * The known tasks, newest first, merged from pages that were loaded at different times. Ids grow with time, so a page is complete between its first
 * and its last id: a known task in that range that the page does not contain was deleted.
 */
import type { Page, TaskSummary } from '@rivulet/client'

export type TaskBook = Readonly<{
  tasks: readonly TaskSummary[]
  /** The cursor of the next older page; null when all tasks are known. */
  nextCursor: string | null
}>

export const emptyBook: TaskBook = { tasks: [], nextCursor: null }

/** @param after the cursor that the page was asked with; null for the first page */
export function mergePage(book: TaskBook, page: Page<TaskSummary>, after: string | null): TaskBook {
  const { data, nextCursor } = page
  const lowest = nextCursor === null ? null : (data.at(-1)?.id ?? after)
  const newer = book.tasks.filter(({ id }) => after !== null && id >= after)
  const older = book.tasks.filter(({ id }) => lowest !== null && id < lowest)
  const isHole = after === null && older.length > 0 && !book.tasks.some(({ id }) => lowest !== null && id >= lowest)
  // More tasks are new than one page holds. The tasks between that page and the known ones are missing, so load the rest again.
  if (isHole) return { tasks: data, nextCursor }
  const known = new Map(book.tasks.map(task => [task.id, task]))
  return {
    tasks: [...newer, ...data.map(task => sameOr(known.get(task.id), task)), ...older],
    nextCursor: older.length > 0 ? book.nextCursor : nextCursor,
  }
}

/** The same object while nothing has changed: every change of a task's turns is a change of the task. */
function sameOr(before: TaskSummary | undefined, task: TaskSummary): TaskSummary {
  return before && before.updatedAt === task.updatedAt && before.status === task.status && before.turns === task.turns ? before : task
}
