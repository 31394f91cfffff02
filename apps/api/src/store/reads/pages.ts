/**
 * Pages of a list. They are by key, so they stay correct while rows are added. A search for what no index has looks at a bounded part of the rows in one call,
 * and the next page goes on from there.
 */
import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import type { JsonRow } from '../connection/json-rows.ts'
import { isListTooSlow } from '../connection/tenant-pool.ts'

export type Page<T, C> = { data: T[]; nextCursor: C | null }

/** A row of a page, and whether there are rows after the page. */
export type PageRow = { row: JsonRow; more: boolean }

export function pageOf<T, C>(rows: readonly PageRow[], entityOf: (row: JsonRow) => T, cursorOf: (entity: T) => C): Page<T, C> {
  const data = rows.map(({ row }) => entityOf(row))
  const last = data.at(-1)
  return { data, nextCursor: rows[0]?.more && last !== undefined ? cursorOf(last) : null }
}

/** How much metadata one call looks at, as it is stored. */
const maxSearchedBytes = 8 * 1024 * 1024

/** `indexed`: the rows to look at, which an index finds, in the order of their ids. */
type Searched = { table: 'tasks' | 'waits'; order: 'asc' | 'desc'; indexed: SQL }

/**
 * Reads a page of at most so many rows. Where Postgres does not return it in time, it looks at a tenth of them instead.
 *
 * @param read gets the condition that ends the search; undefined if it looks at all rows
 */
export async function searchInPieces<T>(
  db: Database,
  searched: Searched,
  maxRows: number,
  read: (isWithin: SQL | undefined) => Promise<Page<T, string>>,
): Promise<Page<T, string>> {
  for (let most = maxRows; ; most /= 10) {
    try {
      const end = await endOfSearch(db, searched, most)
      const isWithin = sql`${sql.raw(`${searched.table}.id ${searched.order === 'desc' ? '>=' : '<='}`)} ${end}`
      const { data, nextCursor } = await read(end === null ? undefined : isWithin)
      return { data, nextCursor: nextCursor ?? end }
    } catch (error) {
      if (!isListTooSlow(error) || most === 1) throw error
    }
  }
}

/** The last row that a search looks at; null if it looks at all. */
async function endOfSearch(db: Database, { table, order, indexed }: Searched, most: number): Promise<string | null> {
  const direction = sql.raw(order)
  const isBeyond = sql`place > ${most} or (place > 1 and bytes > ${maxSearchedBytes})`
  const { rows } = await db.execute<{ end: string | null }>(sql`
    with read as (
      select id, row_number() over in_order as place, sum(bytes) over in_order as bytes
      from (
        select id, pg_column_size(metadata)::bigint as bytes from ${sql.raw(table)} where ${indexed} order by id ${direction} limit ${most + 1}
      ) as next window in_order as (order by id ${direction})
    )
    select id as end from read where place = (select min(place) - 1 from read where ${isBeyond})`)
  return rows[0]?.end ?? null
}
