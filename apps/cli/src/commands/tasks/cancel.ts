/** `rivulet cancel <task>`: cancels all unfinished turns of a task, or the one that runs. Their output so far is kept. */
import { hasEnded, type Task } from '@rivulet/client'
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { parseTaskId } from '../../tasks/task-argument.ts'
import { toJsonLine } from '../../terminal/json-line.ts'

type CancelOptions = { url?: string; key?: string; reason?: string; turn?: boolean; json?: boolean }

export function addCancelCommand(program: Command, context: Context): void {
  const command = program
    .command('cancel')
    .description('cancel all unfinished turns of a task')
    .argument('<task>', 'its id', parseTaskId)
    .option('--reason <text>', 'why')
    .option('--turn', 'only the turn that runs; those behind it run next')
    .option('--json', 'print the task as JSON')
  addConnectionOptions(command).action((task: string, options: CancelOptions) => cancel(context, task, options))
}

async function cancel({ environment, out }: Context, id: string, options: CancelOptions): Promise<void> {
  const scope = options.turn ? 'turn' : 'all'
  const task = await connect(connectionOf(options, environment)).tasks.get(id).cancel(options.reason, { scope })
  out.write(options.json ? toJsonLine({ task }) : `${outcomeOf(task)}\n`)
}

function outcomeOf({ status }: Task): string {
  if (status === 'canceled') return 'canceled'
  return hasEnded(status) ? `it had ended before: ${status}` : `the task goes on: ${status}`
}
