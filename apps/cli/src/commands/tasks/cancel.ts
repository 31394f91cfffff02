/** `rivulet cancel <task>`: cancels all unfinished turns of a task. Their output so far is kept. */
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { parseTaskId } from '../../tasks/task-argument.ts'
import { toJsonLine } from '../../terminal/json-line.ts'

type CancelOptions = { url?: string; key?: string; reason?: string; json?: boolean }

export function addCancelCommand(program: Command, context: Context): void {
  const command = program
    .command('cancel')
    .description('cancel all unfinished turns of a task')
    .argument('<task>', 'its id', parseTaskId)
    .option('--reason <text>', 'why')
    .option('--json', 'print the task as JSON')
  addConnectionOptions(command).action((task: string, options: CancelOptions) => cancel(context, task, options))
}

async function cancel({ environment, out }: Context, id: string, options: CancelOptions): Promise<void> {
  const task = await connect(connectionOf(options, environment)).tasks.get(id).cancel(options.reason)
  out.write(options.json ? toJsonLine({ task }) : task.status === 'canceled' ? 'canceled\n' : `it had ended before: ${task.status}\n`)
}
