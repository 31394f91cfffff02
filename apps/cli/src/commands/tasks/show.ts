/** `rivulet show <task>`: a task as it is now, its turns, and all its messages. */
import { type TaskDetail, tokensOf } from '@rivulet/client'
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { readMessages } from '../../tasks/all-messages.ts'
import { statusText } from '../../tasks/status-text.ts'
import { parseTaskId } from '../../tasks/task-argument.ts'
import { createTranscript } from '../../tasks/transcript.ts'
import { failureText } from '../../tasks/watch-task.ts'
import { cleanLine } from '../../terminal/clean-text.ts'
import { formatAge, formatDuration } from '../../terminal/duration.ts'
import { toJsonLine } from '../../terminal/json-line.ts'
import { formatCost, formatTokens } from '../../terminal/spending.ts'
import { formatTable } from '../../terminal/table.ts'

type ShowOptions = { url?: string; key?: string; json?: boolean }

export function addShowCommand(program: Command, context: Context): void {
  const command = program
    .command('show')
    .description('show a task, its turns and its messages')
    .argument('<task>', 'its id', parseTaskId)
    .option('--json', 'print { task, turns, messages } as JSON')
  addConnectionOptions(command).action((task: string, options: ShowOptions) => show(context, task, options))
}

async function show({ environment, out }: Context, id: string, options: ShowOptions): Promise<void> {
  const handle = connect(connectionOf(options, environment)).tasks.get(id)
  const detail = await handle.detail()
  const messages = await readMessages(handle)
  if (options.json) return out.write(toJsonLine({ ...detail, messages }))
  out.write(describe(detail))
  const transcript = createTranscript({ said: out, noted: out, clock: () => performance.now() })
  transcript.show({ status: detail.task.status, messages, attempt: detail.turns.at(-1)?.attempt ?? 0 })
  transcript.end()
}

function describe({ task, turns }: TaskDetail): string {
  const now = Date.now()
  const facts = [
    ['task', task.id],
    ['agent', task.agent],
    ['status', task.status],
    ['created', `${task.createdAt} (${formatAge(task.createdAt, now)})`],
    ...(task.name === undefined ? [] : [['name', cleanLine(task.name)]]),
    ...(task.parent === undefined ? [] : [['parent', task.parent]]),
    ...(task.params === null ? [] : [['params', cleanLine(JSON.stringify(task.params))]]),
    ...(Object.keys(task.metadata).length === 0 ? [] : [['metadata', cleanLine(JSON.stringify(task.metadata))]]),
  ]
  const rows = turns.map(({ number, status, attempt, startedAt, finishedAt, dueAt, usageTotal, cost, error }) => [
    String(number),
    statusText({ status, dueAt }, now),
    String(attempt),
    startedAt && finishedAt ? formatDuration(Date.parse(finishedAt) - Date.parse(startedAt)) : '',
    usageTotal ? formatTokens(tokensOf(usageTotal)) : '',
    cost === undefined ? '' : formatCost(cost),
    error ? `${failureText(error)} (${error.code})` : '',
  ])
  const lines = facts.map(([name = '', value = '']) => `${name.padEnd(9)}${value}\n`).join('')
  return `${lines}\n${formatTable(['turn', 'status', 'attempt', 'took', 'tokens', 'cost', 'error'], rows)}\n`
}
