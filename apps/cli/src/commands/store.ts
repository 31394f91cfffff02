/** `rivulet store`: the values above the tasks, of a customer, an agent or the tenant. */
import type { Json, StoredValue } from '@rivulet/client'
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../connection.ts'
import type { Context } from '../context.ts'
import { UsageError } from '../exit-code.ts'
import { cleanText } from '../terminal/clean-text.ts'
import { toJsonLine } from '../terminal/json-line.ts'
import { formatTable } from '../terminal/table.ts'

type Common = { url?: string; key?: string; json?: boolean }
type ListOptions = Common & { prefix?: string; q?: string; limit?: string; cursor?: string }
type ChangeOptions = Common & { ifVersion?: string }

export function addStoreCommands(program: Command, context: Context): void {
  const store = program.command('store').description('show and change the values of a customer, an agent or the tenant')
  const add = (name: string, description: string, ...places: string[]) => {
    const command = store.command(name).description(description).argument('<scope>', 'customer:<key>, agent:<name> or tenant')
    for (const place of places) command.argument(place)
    return addConnectionOptions(command.option('--json', 'print it as JSON'))
  }
  add('list', 'list the values of a scope')
    .option('--prefix <text>', 'only keys that begin with it')
    .option('--q <words>', 'only values with these words')
    .option('--limit <count>', 'at most so many')
    .option('--cursor <key>', 'those after this key')
    .action((scope: string, options: ListOptions) => list(context, scope, options))
  add('get', 'show a value', '<name>').action(async (scope: string, name: string, options: Common) =>
    show(context, options, await callsOf(context, options).get(scope, name)),
  )
  add('put', 'store a value', '<name>', '<value>')
    .option('--if-version <number>', 'only in place of this version; 0: only the first value')
    .action(async (scope: string, name: string, value: string, options: ChangeOptions) =>
      show(context, options, await callsOf(context, options).put(scope, name, await readValue(context, value), versionOf(options))),
    )
  add('remove', 'delete a value', '<name>').action(async (scope: string, name: string, options: Common) => {
    await callsOf(context, options).remove(scope, name)
    context.out.write(options.json ? toJsonLine({ removed: name }) : `${cleanText(name)} is deleted\n`)
  })
  add('clear', 'delete all values of a scope').action(async (scope: string, options: Common) => {
    await callsOf(context, options).clear(scope)
    context.out.write(options.json ? toJsonLine({ cleared: scope }) : `${cleanText(scope)} has no values\n`)
  })
}

function callsOf({ environment }: Context, options: Common) {
  return connect(connectionOf(options, environment)).store
}

async function list(context: Context, scope: string, { prefix, q, limit, cursor, ...options }: ListOptions): Promise<void> {
  const query = { prefix, q, cursor, ...(limit !== undefined && { limit: Number(limit) }) }
  const { data, nextCursor } = await callsOf(context, options).list(scope, query)
  const { out } = context
  if (options.json) return out.write(toJsonLine({ data, nextCursor }))
  const rows = data.map(({ key, version, value }) => [cleanText(key), String(version), cleanText(JSON.stringify(value)).slice(0, 80)])
  out.write(rows.length > 0 ? formatTable(['key', 'version', 'value'], rows) : 'no values\n')
  if (nextCursor !== null) out.write(`more: --cursor ${cleanText(nextCursor)}\n`)
}

function show({ out }: Context, { json }: Common, stored: StoredValue): void {
  out.write(json ? toJsonLine(stored) : `version ${stored.version}\n${cleanText(JSON.stringify(stored.value, null, 2))}\n`)
}

async function readValue({ readInput }: Context, given: string): Promise<Json> {
  try {
    return JSON.parse(given === '-' ? await readInput() : given)
  } catch {
    throw new UsageError('A value is JSON, or - for JSON from stdin')
  }
}

function versionOf({ ifVersion }: ChangeOptions): { version?: number } {
  if (ifVersion === undefined) return {}
  if (!/^\d{1,9}$/.test(ifVersion)) throw new UsageError('--if-version takes the number of a version')
  return { version: Number(ifVersion) }
}
