/** The calls of packages/client that are one request each: their types, and the rows that they are sent by. */

import type { Route } from '@rivulet/contract/route'
import { nouns } from '@rivulet/contract/routes'
import { z } from 'zod'
import { fieldsOfBody } from './shapes.ts'

const tags = ['agents', 'files', 'keys', 'limits', 'schedules', 'store', 'tasks', 'waits', 'webhooks']

/** Their method in the client has other parameters, or their response depends on them. */
const byHand = ['createTask', 'createTurn', 'deleteTask', 'forkTask', 'getTurn', 'getWait', 'listTasks', 'listWaits']

type Row = { name: string; entry: string; operation: string; row: Route; returns: z.ZodType }

export function clientCallsText(): string {
  const rows = Object.entries(nouns).flatMap(([entry, noun]) =>
    Object.entries(noun).flatMap(([operation, row]) => rowOf(entry, operation, row as Route)),
  )
  rows.sort((a, b) => a.row.path.localeCompare(b.row.path) || a.name.localeCompare(b.name))
  const entries = new Set(rows.map(({ entry }) => entry))
  return [
    '/** The calls that are one request each. Written by `npm run generate`. */',
    ...Array.from(entries, entry => `import type * as ${entry} from '@rivulet/contract/${entry}'`).sort(),
    "import type { CallOf } from '../http/call-of.ts'",
    '',
    'export type Calls = {',
    ...blocks(rows, ({ name, entry, operation, row }) => `/** ${row.doc} */ ${name}: CallOf<typeof ${entry}.${operation}>`),
    '}',
    '',
    'export const calls = {',
    ...blocks(
      rows,
      ({ name, row, returns }) => `${name}: '${[row.method, row.path, inputOf(row), fieldsOfBody(returns)].join(' ').trim()}',`,
    ),
    '} as const',
    '',
  ].join('\n')
}

function blocks(rows: readonly Row[], lineOf: (row: Row) => string): string[] {
  return tags.flatMap(tag => [`  ${tag}: {`, ...rows.filter(({ row }) => row.tag === tag).map(row => `    ${lineOf(row)}`), '  },'])
}

function rowOf(entry: string, operation: string, row: Route): Row[] {
  const returns = Object.values(row?.returns ?? {})[0]
  const isCall = tags.includes(row?.tag) && row.scope !== 'worker' && !row.consumes && !byHand.includes(operation)
  const isJson = returns instanceof z.ZodObject || returns instanceof z.ZodNull
  return isCall && isJson ? [{ name: nameOf(operation, row), entry, operation, row, returns }] : []
}

/** The first word of the operation, or the noun of a list. Calls below a task, and those about one thing of another noun, keep their whole name. */
function nameOf(operation: string, { tag, path }: Route): string {
  const noun = path.split('/').findLast(part => !part.startsWith(':')) ?? ''
  if (operation.startsWith('list') && noun !== tag) return noun
  if (noun !== tag && (tag === 'tasks' || /:\w+$/.test(path))) return operation
  const [verb = operation] = /^[a-z]+/.exec(operation) ?? []
  return verb === 'delete' ? 'remove' : verb
}

function inputOf({ body, query }: Route): string {
  if (body) return 'body'
  return query ? 'query' : '-'
}
