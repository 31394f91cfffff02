/** `rivulet waits`: what people have to decide. `rivulet answer <task> <wait> accept`: decides it. */
import type { Json, WaitAction } from '@rivulet/client'
import { Argument, type Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { parseJson } from '../../json-argument.ts'
import { parseTaskId } from '../../tasks/task-argument.ts'
import { cleanLine } from '../../terminal/clean-text.ts'
import { formatDuration } from '../../terminal/duration.ts'
import { toJsonLine } from '../../terminal/json-line.ts'
import { formatTable } from '../../terminal/table.ts'

type Connection = { url?: string; key?: string; json?: boolean }
type WaitsOptions = Connection & { status?: 'open' | 'answered' | 'expired' | 'canceled'; agent?: string; assignee?: string; task?: string }
type AnswerOptions = Connection & { content?: Json; comment?: string }

export function addWaitsCommands(program: Command, context: Context): void {
  const waits = program
    .command('waits')
    .description('list what turns wait for, oldest first')
    .option('--status <status>', 'open, answered, expired or canceled')
    .option('--agent <name>', 'only of this agent')
    .option('--assignee <name>', 'only for this person or group')
    .option('--task <id>', 'only of this task', parseTaskId)
    .option('--json', 'print them as JSON')
  addConnectionOptions(waits).action((options: WaitsOptions) => listWaits(context, options))
  const answer = program
    .command('answer')
    .description('respond to what a turn waits for')
    .argument('<task>', 'its id', parseTaskId)
    .argument('<wait>', 'the name or the id of the wait')
    .addArgument(new Argument('<action>', 'what to do').choices(['accept', 'edit', 'decline']))
    .option('--content <json>', 'the fields of a form, or the edited arguments', parseJson)
    .option('--comment <text>', 'why')
    .option('--json', 'print the wait as JSON')
  addConnectionOptions(answer).action((task: string, wait: string, action: WaitAction, options: AnswerOptions) =>
    sendAnswer(context, { task, wait, action }, options),
  )
}

async function listWaits({ environment, out }: Context, { url, key, json, ...filters }: WaitsOptions): Promise<void> {
  const { data } = await connect(connectionOf({ ...(url && { url }), ...(key && { key }) }, environment)).waits.list(filters)
  if (json) return out.write(toJsonLine({ data }))
  const rows = data.map(({ task, name, kind, agent, assignee = '', title, createdAt }) => [
    ...[task, name, kind, agent, assignee, formatDuration(Date.now() - Date.parse(createdAt)), title].map(cleanLine),
  ])
  out.write(rows.length > 0 ? formatTable(['task', 'wait', 'kind', 'agent', 'assignee', 'age', 'title'], rows) : 'no waits\n')
}

type Given = { task: string; wait: string; action: WaitAction }

async function sendAnswer({ environment, out }: Context, { task: id, wait: given, action }: Given, options: AnswerOptions): Promise<void> {
  const task = connect(connectionOf(options, environment)).tasks.get(id)
  const open = await task.waits()
  const wait = open.find(({ name }) => name === given)?.id ?? given
  const { content, comment } = options
  const answered = await task.answer(wait, { action, ...(content !== undefined && { content }), ...(comment !== undefined && { comment }) })
  out.write(options.json ? toJsonLine({ wait: answered }) : `${answered.name}: ${answered.answer?.action}\n`)
}
