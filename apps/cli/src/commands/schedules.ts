/** `rivulet schedules`: tasks that the server creates at the times of a cron line. */
import type { Json, Schedule, ScheduleCalls } from '@rivulet/client'
import { type Command, Option } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../connection.ts'
import type { Context } from '../context.ts'
import { everyPage } from '../every-page.ts'
import { parseJson } from '../json-argument.ts'
import { toJsonLine } from '../terminal/json-line.ts'
import { formatTable } from '../terminal/table.ts'

type Common = { url?: string; key?: string; json?: boolean }
type CreateOptions = Common & Pick<Schedule, 'overlap' | 'missed' | 'timezone'> & { params?: Json; name?: string }

const overlaps = ['skip', 'queue', 'interrupt'] satisfies Schedule['overlap'][]
const misses = ['skip', 'once'] satisfies Schedule['missed'][]

export function addSchedulesCommands(program: Command, context: Context): void {
  const schedules = program.command('schedules').description('create tasks at the times of a cron line')
  const add = (command: Command) => addConnectionOptions(command.option('--json', 'print it as JSON'))
  const byId = (name: string, description: string) => add(schedules.command(name).description(description).argument('<id>', 'its id'))
  add(schedules.command('list', { isDefault: true }).description('list the schedules')).action((options: Common) => list(context, options))
  add(
    schedules
      .command('create')
      .description('create a schedule')
      .argument('<agent>', 'the agent of its tasks')
      .argument('<cron>', 'minute, hour, day of the month, month and day of the week, such as "0 7 * * 1-5"')
      .argument('[text]', 'the input of each run')
      .option('--timezone <zone>', 'the time zone of the cron line, such as Europe/Berlin', 'UTC')
      .option('--name <name>', 'each run is a turn of the task of this name (default: a task of its own)')
      .option('--params <json>', 'parameters of the task', parseJson)
      .addOption(new Option('--overlap <how>', 'while an earlier run has not ended').choices(overlaps).default('skip'))
      .addOption(new Option('--missed <how>', 'for times at which no API ran').choices(misses).default('skip')),
  ).action((agent: string, cron: string, text: string | undefined, options: CreateOptions) => create(context, agent, cron, text, options))
  byId('pause', 'run it no more until it is resumed').action((id: string, options: Common) => change(context, id, 'pause', options))
  byId('resume', 'run it again').action((id: string, options: Common) => change(context, id, 'resume', options))
  byId('trigger', 'run it once, now').action(async (id: string, options: Common) => {
    const run = await callsOf(context, options).trigger(id)
    context.out.write(options.json ? toJsonLine({ run }) : `${run.task ?? `skipped: ${run.skipReason}`}\n`)
  })
  byId('history', 'list its latest runs, newest first').action((id: string, options: Common) => history(context, id, options))
  byId('delete', 'delete a schedule; its tasks stay').action(async (id: string, options: Common) => {
    await callsOf(context, options).remove(id)
    context.out.write(options.json ? toJsonLine({ deleted: id }) : `${id} is deleted\n`)
  })
}

function callsOf({ environment }: Context, options: Common): ScheduleCalls {
  return connect(connectionOf(options, environment)).schedules
}

async function list(context: Context, options: Common): Promise<void> {
  const calls = callsOf(context, options)
  const found = await everyPage(cursor => calls.list({ cursor }))
  if (options.json) return context.out.write(toJsonLine({ data: found }))
  context.out.write(found.length > 0 ? formatTable(columns, found.map(rowOf)) : 'no schedules\n')
}

const columns = ['id', 'agent', 'cron', 'timezone', 'next', 'name']

function rowOf({ id, agent, cron, timezone, status, nextAt, name }: Schedule): string[] {
  return [id, agent, cron, timezone, status === 'paused' ? status : (nextAt ?? 'never'), name ?? '']
}

async function create(context: Context, agent: string, cron: string, text: string | undefined, options: CreateOptions): Promise<void> {
  const { timezone, overlap, missed, name, params } = options
  const schedule = await callsOf(context, options).create({
    ...{ agent, cron, timezone, overlap, missed },
    ...(text !== undefined && { input: text }),
    ...(name !== undefined && { name }),
    ...(params !== undefined && { params }),
  })
  context.out.write(options.json ? toJsonLine({ schedule }) : formatTable(columns, [rowOf(schedule)]))
}

async function change(context: Context, id: string, call: 'pause' | 'resume', options: Common): Promise<void> {
  const schedule = await callsOf(context, options)[call](id)
  context.out.write(options.json ? toJsonLine({ schedule }) : `${id} is ${schedule.status}\n`)
}

async function history(context: Context, id: string, options: Common): Promise<void> {
  const page = await callsOf(context, options).history(id, { limit: 100 })
  if (options.json) return context.out.write(toJsonLine(page))
  const rows = page.data.map(({ at, task, turn, skipReason, error }) => [
    ...[at, skipReason ? `skipped: ${skipReason}` : 'started', task ?? '', String(turn ?? ''), error?.message ?? ''],
  ])
  context.out.write(rows.length > 0 ? formatTable(['time', 'run', 'task', 'turn', 'error'], rows) : 'no runs\n')
}
