/** Rows as JSON, with Postgres' column names: the parameters and results of a statement about several tables. */
import { getTableColumns, type SQL } from 'drizzle-orm'
import { toSnakeCase } from 'drizzle-orm/casing'
import { PgDialect, type PgTable } from 'drizzle-orm/pg-core'

export type JsonRow = Record<string, unknown>

/** The columns of a table, or of what is like a row of it under the name `of`, as a list in SQL. A column that this version does not know keeps its default. */
export function columnsOf(table: PgTable, { except = [], of }: { except?: readonly string[]; of?: string } = {}): string {
  return namesOf(table)
    .filter(({ column }) => !except.includes(column))
    .map(({ column }) => `${of ? `${of}.` : ''}"${column}"`)
    .join(', ')
}

export function toJsonRow<T extends PgTable>(table: T, row: Partial<T['$inferSelect']>): JsonRow {
  const values: JsonRow = row
  const json: JsonRow = {}
  for (const { name, column } of namesOf(table)) json[column] = values[name]
  return json
}

/** Columns and their values as the assignments of an `update`. */
export function assignments(values: Record<string, SQL>): string {
  return Object.entries(values)
    .map(([name, value]) => `${toSnakeCase(name)} = ${dialect.sqlToQuery(value).sql}`)
    .join(', ')
}

const dialect = new PgDialect()

/** What `to_json(table)` returned. */
export function fromJsonRow<T extends PgTable>(table: T, json: JsonRow): T['$inferSelect'] {
  return Object.fromEntries(
    namesOf(table).map(({ name, column, isTime }) => {
      const value = json[column]
      return [name, isTime && typeof value === 'string' ? new Date(value) : value]
    }),
  )
}

type Names = { name: string; column: string; isTime: boolean }[]

const known = new Map<PgTable, Names>()

function namesOf(table: PgTable): Names {
  const before = known.get(table)
  if (before) return before
  const names = Object.entries(getTableColumns(table)).map(([name, { dataType }]) => ({
    ...{ name, column: toSnakeCase(name) },
    isTime: dataType === 'date',
  }))
  known.set(table, names)
  return names
}
