/** `rivulet export <task>`: prints everything that is stored of a task, as lines of JSON. */
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { parseTaskId } from '../../tasks/task-argument.ts'
import { toJsonLine } from '../../terminal/json-line.ts'

type ExportOptions = { url?: string; key?: string }

export function addExportCommand(program: Command, context: Context): void {
  const command = program
    .command('export')
    .description('print a task, its turns, its messages and its usage as lines of JSON')
    .argument('<task>', 'its id', parseTaskId)
  addConnectionOptions(command).action((id: string, options: ExportOptions) => exportTask(context, id, options))
}

async function exportTask({ environment, out }: Context, id: string, options: ExportOptions): Promise<void> {
  for await (const line of connect(connectionOf(options, environment)).tasks.get(id).export()) {
    out.write(toJsonLine(line))
    await out.flush()
  }
}
