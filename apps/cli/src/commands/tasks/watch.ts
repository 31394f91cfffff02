/** `rivulet watch`: prints every change of tasks and turns as it happens, until Ctrl-C; with ids, the events of these tasks until they have ended. */
import { type FeedEntry, isLogged, type ManyEvent, type RivuletClient } from '@rivulet/client'
import { type FeedEntryType, feedEntryTypeSchema } from '@rivulet/contract/feed'
import { type Command, Option } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { parseTaskId } from '../../tasks/task-argument.ts'
import { toJsonLine } from '../../terminal/json-line.ts'

type WatchOptions = {
  url?: string
  key?: string
  agent?: string
  type?: FeedEntryType[]
  after?: string
  follow?: boolean
  children?: boolean
  json?: boolean
}

export function addWatchCommand(program: Command, context: Context): void {
  const command = program
    .command('watch')
    .description('watch all tasks, or some: print each change as it happens')
    .argument('[tasks...]', 'their ids: print the events of these tasks, by one connection', parseTaskIds)
    .option('--agent <agent>', 'only tasks of this agent')
    .addOption(new Option('--type <type...>', 'only changes of these types').choices(feedEntryTypeSchema.options))
    .option('--after <seq>', 'also the changes after this place; 0-0 means all that are kept (default: from now on)')
    .option('--follow', 'with ids: keep watching when the tasks have ended')
    .option('--children', 'with ids: also the children of these tasks, of all levels')
    .option('--json', 'print every change as a line of JSON')
  addConnectionOptions(command).action((tasks: string[], options: WatchOptions) => watch(context, tasks, options))
}

async function watch({ out, environment, onInterrupt }: Context, tasks: readonly string[], options: WatchOptions): Promise<void> {
  const client = connect(connectionOf(options, environment))
  // An event stream is tried for ever; whether the API can be reached is asked before.
  await client.ready()
  const leaving = new AbortController()
  const dispose = onInterrupt(() => leaving.abort())
  try {
    for await (const line of linesOf(client, tasks, options, leaving.signal)) {
      out.write(line)
      await out.flush()
    }
  } catch (error) {
    if (!leaving.signal.aborted) throw error
  } finally {
    dispose()
  }
}

async function* linesOf(
  client: RivuletClient,
  tasks: readonly string[],
  options: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const { agent, type: types, after, follow = false, children = false, json = false } = options
  if (tasks.length === 0)
    for await (const entry of client.feed.follow({ agent, types, after, signal })) yield json ? toJsonLine(entry) : lineOf(entry)
  else
    for await (const { id, event } of client.watchMany(tasks, { follow, children, signal }))
      yield json ? toJsonLine({ id, event }) : eventLine(id, event)
}

/** Of a delta nothing: the words of several tasks at once are not readable. */
function eventLine(id: string, event: ManyEvent): string {
  if (event.type === 'message.delta' || event.type === 'caught_up') return ''
  if (event.type === 'snapshot') return `${event.task.updatedAt} ${event.type.padEnd(16)} ${id} ${event.task.status}\n`
  if (event.type === 'deleted' || !isLogged(event)) return `${new Date().toISOString()} ${event.type.padEnd(16)} ${id}\n`
  const place = 'index' in event && event.index !== undefined ? ` message ${event.index}` : ''
  const status = 'status' in event ? ` ${event.status}` : ''
  return `${new Date(event.at).toISOString()} ${event.type.padEnd(16)} ${id} turn ${event.turn}${place}${status}\n`
}

function parseTaskIds(text: string, before: string[] = []): string[] {
  return [...before, parseTaskId(text)]
}

function lineOf({ at, type, task, agent, turn, status, error }: FeedEntry): string {
  const about = turn === undefined ? task : `${task} turn ${turn}`
  return `${`${at} ${type.padEnd(13)} ${about} ${agent} ${status ?? ''}${error ? ` (${error.code})` : ''}`.trimEnd()}\n`
}
