/** `rivulet tasks`: lists tasks, newest first, with filters. */
import type { Page, TaskQuery, TaskStatus } from '@rivulet/client'
import { taskStatusSchema } from '@rivulet/protocol'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { statusText } from '../../tasks/status-text.ts'
import { parseTaskId } from '../../tasks/task-argument.ts'
import { formatAge } from '../../terminal/duration.ts'
import { toJsonLine } from '../../terminal/json-line.ts'
import { formatCost, formatTokens } from '../../terminal/spending.ts'
import { formatTable } from '../../terminal/table.ts'

type TasksOptions = Omit<TaskQuery, 'status'> & {
  url?: string
  key?: string
  status?: TaskStatus
  json?: boolean
}

export function addTasksCommand(program: Command, context: Context): void {
  const command = program
    .command('tasks')
    .description('list tasks, newest first')
    .option('--agent <name>', 'only tasks of this agent')
    .addOption(new Option('--status <status>', 'in this state').choices(taskStatusSchema.options))
    .option('--name <name>', 'only the task of this name')
    .option('--q <text>', 'only tasks with this text in their name, metadata, first input or id')
    .option('--parent <task>', 'only children and forks of this task', parseTaskId)
    .option('--metadata <key=value>', 'only tasks with this metadata (repeatable)', addPair)
    .option('--created-after <time>', 'only tasks created after this time, in ISO 8601')
    .option('--created-before <time>', 'only tasks created before this time')
    .option('--error-code <code>', 'only tasks that ended with this error')
    .option('--min-duration-ms <ms>', 'only tasks that ran at least this long', Number)
    .option('--max-duration-ms <ms>', 'only tasks that ran at most this long', Number)
    .option('--limit <count>', 'how many tasks, at most 100', parseLimit, 20)
    .option('--cursor <cursor>', 'nextCursor of the previous page')
    .option('--json', 'print the page as JSON')
  addConnectionOptions(command).action((options: TasksOptions) => listTasks(context, options))
}

async function listTasks({ environment, out, err }: Context, { url, key, json, ...query }: TasksOptions): Promise<void> {
  const { tasks } = connect(connectionOf({ ...(url && { url }), ...(key && { key }) }, environment))
  if (json) return out.write(toJsonLine(await firstPage(query, next => tasks.list(next))))
  const page = await firstPage(query, next => tasks.summaries(next))
  const now = Date.now()
  const rows = page.data.map(({ id, agent, status, dueAt, updatedAt, tokens, cost, name }) => [
    ...[id, agent, statusText({ status, dueAt }, now), formatAge(updatedAt, now)],
    ...[tokens > 0 ? formatTokens(tokens) : '', cost === undefined ? '' : formatCost(cost), name ?? ''],
  ])
  out.write(rows.length > 0 ? formatTable(['id', 'agent', 'status', 'changed', 'tokens', 'cost', 'name'], rows) : 'no tasks\n')
  if (page.nextCursor) err.write(`more with --cursor ${page.nextCursor}\n`)
}

/** The first page that has a task, or the last page. A search looks at a limited number of tasks for one page, so a page may be empty before the last. */
async function firstPage<T>(query: TaskQuery, read: (query: TaskQuery) => Promise<Page<T>>): Promise<Page<T>> {
  let page = await read(query)
  while (page.data.length === 0 && page.nextCursor !== null) page = await read({ ...query, cursor: page.nextCursor })
  return page
}

export function addPair(text: string, earlier: Record<string, string> = {}): Record<string, string> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (key === undefined || value === undefined) throw new InvalidArgumentError('Write it as key=value.')
  return { ...earlier, [key]: value }
}

function parseLimit(text: string): number {
  const limit = Number(text)
  if (!/^\d{1,3}$/.test(text) || limit < 1 || limit > 100) throw new InvalidArgumentError('Give a number from 1 to 100.')
  return limit
}
