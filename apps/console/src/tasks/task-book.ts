/**
 * The known tasks, newest first, merged from pages that were loaded at different times. Ids grow with time, so a page is complete from its beginning
 * down to its `nextCursor`: a known task in that range that the page does not contain was deleted. A search looks at a limited number of tasks for one
 * page, so its page may be short or empty although it has a `nextCursor`.
 */
import type { Page, TaskSummary } from '@rivulet/client'

export type TaskBook = Readonly<{
  tasks: readonly TaskSummary[]
  /** The cursor of the next older page; null when all tasks are known. */
  nextCursor: string | null
}>

export const emptyBook: TaskBook = { tasks: [], nextCursor: null }

/**
 * @param book null before the first page
 * @param after the cursor that the page was asked with; null for the first page
 */
export function mergePage(book: TaskBook | null, page: Page<TaskSummary>, after: string | null): TaskBook {
  const { data, nextCursor } = page
  if (book === null) return { tasks: data, nextCursor }
  // The book began anew while the page was loaded, and the tasks between the two are missing.
  if (after !== null && book.nextCursor !== null && after < book.nextCursor) return book
  const newer = book.tasks.filter(({ id }) => after !== null && id >= after)
  const older = book.tasks.filter(({ id }) => nextCursor !== null && id < nextCursor)
  // A search ended its page at a task that does not match: it looked at thousands of tasks, more than are created between two reads.
  const isFull = nextCursor !== null && data.at(-1)?.id === nextCursor
  const isHole = after === null && isFull && older.length === book.tasks.length
  // More tasks are new than one page holds. The tasks between that page and the known ones are missing, so load the rest again.
  if (isHole) return { tasks: data, nextCursor }
  const known = new Map(book.tasks.map(task => [task.id, task]))
  return {
    tasks: [...newer, ...data.map(task => sameOr(known.get(task.id), task)), ...older],
    // Below a full page with no known task, older tasks may have come to match since.
    nextCursor: isFull && older.length === 0 ? nextCursor : lower(book.nextCursor, nextCursor),
  }
}

/** Null is the end of the list. */
function lower(one: string | null, other: string | null): string | null {
  return one === null || other === null ? null : one < other ? one : other
}

/** The same object while nothing has changed: every change of a task's turns is a change of the task. */
function sameOr(before: TaskSummary | undefined, task: TaskSummary): TaskSummary {
  return before && before.updatedAt === task.updatedAt && before.status === task.status && before.turns === task.turns ? before : task
}
