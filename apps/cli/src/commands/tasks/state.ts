/** `rivulet state <task>`: shows the state of a task, or replaces it. */
import type { Json } from '@rivulet/client'
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { UsageError } from '../../exit-code.ts'
import { parseTaskId } from '../../tasks/task-argument.ts'
import { cleanText } from '../../terminal/clean-text.ts'
import { toJsonLine } from '../../terminal/json-line.ts'

type StateOptions = { url?: string; key?: string; set?: string; ifVersion?: string; json?: boolean }

export function addStateCommand(program: Command, context: Context): void {
  const command = program
    .command('state')
    .description('show the state of a task, or replace it')
    .argument('<task>', 'its id', parseTaskId)
    .option('--set <json>', 'the new value; - reads it from stdin')
    .option('--if-version <number>', 'replace only this version; default: any')
    .option('--json', 'print { version, value } as one line of JSON')
  addConnectionOptions(command).action((task: string, options: StateOptions) => show(context, task, options))
}

async function show({ environment, out, readInput }: Context, id: string, options: StateOptions): Promise<void> {
  const { state } = connect(connectionOf(options, environment)).tasks.get(id)
  const { set, ifVersion } = options
  const known = ifVersion === undefined ? 'any' : Number(ifVersion)
  if (known !== 'any' && !Number.isSafeInteger(known)) throw new UsageError('--if-version takes the number of a version')
  const found = set === undefined ? await state.get() : await state.put(parseValue(set === '-' ? await readInput() : set), known)
  out.write(options.json ? toJsonLine(found) : `version ${found.version}\n${cleanText(JSON.stringify(found.value, null, 2))}\n`)
}

function parseValue(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError('--set takes JSON')
  }
}
