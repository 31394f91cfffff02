/** `rivulet change <task>`: changes the name and the metadata of a task. */
import type { ChangeTaskInput } from '@rivulet/client'
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { parseTaskId } from '../../tasks/task-argument.ts'
import { toJsonLine } from '../../terminal/json-line.ts'
import { addPair } from './tasks.ts'

type ChangeOptions = { url?: string; key?: string; name?: string; metadata?: Record<string, string>; json?: boolean }

export function addChangeCommand(program: Command, context: Context): void {
  const command = program
    .command('change')
    .description('change the name and the metadata of a task')
    .argument('<task>', 'its id', parseTaskId)
    .option('--name <name>', 'its new name; an empty one removes it')
    .option('--metadata <key=value>', 'a text of its metadata; an empty value removes the key (repeatable)', addPair)
    .option('--json', 'print the task as JSON')
  addConnectionOptions(command).action((id: string, options: ChangeOptions) => change(context, id, options))
}

async function change({ environment, out }: Context, id: string, { name, metadata, json, ...options }: ChangeOptions): Promise<void> {
  const pairs = Object.entries(metadata ?? {}).map(([key, value]) => [key, value === '' ? null : value])
  const wanted: ChangeTaskInput = {
    ...(name !== undefined && { name: name === '' ? null : name }),
    ...(metadata && { metadata: Object.fromEntries(pairs) }),
  }
  const task = await connect(connectionOf(options, environment)).tasks.get(id).change(wanted)
  out.write(json ? toJsonLine({ task }) : 'changed\n')
}
