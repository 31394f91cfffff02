/** Pages of a list. They are by key, so they stay correct while rows are added. */
import type { JsonRow } from '../connection/json-rows.ts'

export type Page<T, C> = { data: T[]; nextCursor: C | null }

/** A row of a page, and whether there are rows after the page. */
export type PageRow = { row: JsonRow; more: boolean }

export function pageOf<T, C>(rows: readonly PageRow[], entityOf: (row: JsonRow) => T, cursorOf: (entity: T) => C): Page<T, C> {
  const data = rows.map(({ row }) => entityOf(row))
  const last = data.at(-1)
  return { data, nextCursor: rows[0]?.more && last !== undefined ? cursorOf(last) : null }
}
