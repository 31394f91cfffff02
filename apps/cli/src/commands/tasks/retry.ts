/** `rivulet retry <task>`: runs the last turn of a task again, as a new turn, and streams it. */
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { parseTaskId } from '../../tasks/task-argument.ts'
import { toJsonLine } from '../../terminal/json-line.ts'
import { showTask } from './run.ts'

type RetryOptions = { url?: string; key?: string; detach?: boolean; json?: boolean }

export function addRetryCommand(program: Command, context: Context): void {
  const command = program
    .command('retry')
    .description('run the last turn of a task again')
    .argument('<task>', 'its id', parseTaskId)
    .option('--detach', 'do not stream it')
    .option('--json', 'print every event as a line of JSON')
  addConnectionOptions(command).action((id: string, options: RetryOptions) => retry(context, id, options))
}

async function retry(context: Context, id: string, { detach, json, ...options }: RetryOptions): Promise<void> {
  const { url, ...connection } = connectionOf(options, context.environment)
  const task = connect({ url, ...connection }).tasks.get(id)
  const turn = await task.retry()
  if (detach) return context.out.write(json ? toJsonLine({ turn }) : `turn ${turn.number}\n`)
  return showTask(context, task, { url, isJson: json === true, fromTurn: turn.number })
}
