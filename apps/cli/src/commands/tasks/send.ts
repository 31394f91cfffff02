/** `rivulet send <task> "text"`: sends a task its next input, and streams what it becomes. */
import { hasEnded, type IfBusy, type TaskHandle } from '@rivulet/client'
import { type Command, Option } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { collect, secretOption, secretsOf } from '../../tasks/secret-option.ts'
import { parseTaskId, parseTurnNumber } from '../../tasks/task-argument.ts'
import { toJsonLine } from '../../terminal/json-line.ts'
import { showTask } from './run.ts'

type SendOptions = { url?: string; key?: string; ifBusy: IfBusy; after?: number; secret?: string[]; detach?: boolean; json?: boolean }

const choices = ['queue', 'reject', 'interrupt', 'decline', 'inject', 'merge'] satisfies IfBusy[]

export function addSendCommand(program: Command, context: Context): void {
  const command = program
    .command('send')
    .description('send a task its next input')
    .argument('<task>', 'its id', parseTaskId)
    .argument('<text>', 'the input; - reads it from stdin')
    .addOption(new Option('--if-busy <how>', 'while a turn runs; inject hands it to that turn').choices(choices).default('queue'))
    .option('--after <turn>', 'discard the turns after this one first; 0 discards all', parseTurnNumber)
    .option('--secret <variable>', secretOption, collect)
    .option('--detach', 'do not stream it')
    .option('--json', 'print every event as a line of JSON')
  addConnectionOptions(command).action((id: string, text: string, options: SendOptions) => send(context, id, text, options))
}

async function send(
  context: Context,
  id: string,
  text: string,
  { detach, json, ifBusy, after, secret, ...options }: SendOptions,
): Promise<void> {
  const { url, ...connection } = connectionOf(options, context.environment)
  const task = connect({ url, ...connection }).tasks.get(id)
  const turn = await task.send(text === '-' ? await context.readInput() : text, {
    ifBusy,
    ...(after !== undefined && { after }),
    ...secretsOf(secret, context.environment),
  })
  if (detach) return context.out.write(json ? toJsonLine({ turn }) : `turn ${turn.number}\n`)
  const fromTurn = ifBusy === 'queue' ? turn.number : await firstUnfinished(task, turn.number)
  return showTask(context, task, { url, isJson: json === true, fromTurn })
}

/** An input that may join another turn is shown with that turn. */
async function firstUnfinished(task: TaskHandle, own: number): Promise<number> {
  const { turns } = await task.detail()
  return turns.find(({ number, status, joinedTo }) => !hasEnded(status) && joinedTo === undefined && number <= own)?.number ?? own
}
