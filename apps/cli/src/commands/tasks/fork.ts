/** `rivulet fork <task>`: copies a task up to the end of one of its turns. With a text, the copy goes on with it, and is streamed. */
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { parseTaskId, parseTurnNumber } from '../../tasks/task-argument.ts'
import { toJsonLine } from '../../terminal/json-line.ts'
import { showTask } from './run.ts'

type ForkOptions = { url?: string; key?: string; after?: number; name?: string; detach?: boolean; json?: boolean }

export function addForkCommand(program: Command, context: Context): void {
  const command = program
    .command('fork')
    .description('copy a task, and go on from there')
    .argument('<task>', 'its id', parseTaskId)
    .argument('[text]', 'the next input of the copy; - reads it from stdin')
    .option('--after <turn>', 'the last turn of the copy', parseTurnNumber)
    .option('--name <name>', 'a name for the copy')
    .option('--detach', 'print the id of the copy and exit')
    .option('--json', 'print every event as a line of JSON')
  addConnectionOptions(command).action((id: string, text: string | undefined, options: ForkOptions) => fork(context, id, text, options))
}

async function fork(context: Context, id: string, text: string | undefined, options: ForkOptions): Promise<void> {
  const { url, ...connection } = connectionOf(options, context.environment)
  const { after, name, detach, json } = options
  const input = text === '-' ? await context.readInput() : text
  const copy = await connect({ url, ...connection })
    .tasks.get(id)
    .fork({ ...(after !== undefined && { after }), ...(name !== undefined && { name }), ...(input !== undefined && { input }) })
  if (detach || input === undefined) return context.out.write(json ? toJsonLine({ task: copy.task, turn: copy.turn }) : `${copy.id}\n`)
  return showTask(context, copy, { url, isJson: json === true, fromTurn: copy.turn.number })
}
