/** `rivulet workers` and `rivulet versions`: the workers with their turns, and which versions still have turns. */
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../connection.ts'
import type { Context } from '../context.ts'
import { formatDuration } from '../terminal/duration.ts'
import { toJsonLine } from '../terminal/json-line.ts'
import { formatTable } from '../terminal/table.ts'

type Options = { url?: string; key?: string; json?: boolean }

export function addWorkersCommands(program: Command, context: Context): void {
  const add = (name: string, description: string) =>
    addConnectionOptions(program.command(name).description(description).option('--json', 'print it as JSON'))
  add('workers', 'list the workers of the last day').action((options: Options) => listWorkers(context, options))
  add('versions', 'list the versions of workers, and the turns that are left of each').action((options: Options) =>
    listVersions(context, options),
  )
}

async function listWorkers({ environment, out }: Context, options: Options): Promise<void> {
  const workers = await connect(connectionOf(options, environment)).agents.workers()
  if (options.json) return out.write(toJsonLine({ data: workers }))
  const rows = workers.map(({ id, version = '–', slots, agents, isLive, silentMs, turns }) => [
    ...[id, isLive ? 'live' : `silent for ${formatDuration(silentMs)}`, version],
    ...[slots === undefined ? String(turns.length) : `${turns.length} of ${slots}`, agents.join(', ')],
  ])
  out.write(rows.length > 0 ? formatTable(['worker', 'state', 'version', 'turns', 'agents'], rows) : 'no workers in the last day\n')
}

async function listVersions({ environment, out }: Context, options: Options): Promise<void> {
  const versions = await connect(connectionOf(options, environment)).agents.versions()
  if (options.json) return out.write(toJsonLine({ data: versions }))
  const rows = versions.map(({ version, workers, queued, running, waiting, isDrained, agents }) => [
    ...[version, ...[workers, queued, running, waiting].map(String)],
    ...[isDrained ? 'yes' : 'no', agents.join(', ')],
  ])
  const columns = ['version', 'workers', 'queued', 'running', 'waiting', 'drained', 'agents']
  out.write(rows.length > 0 ? formatTable(columns, rows) : 'no workers in the last day\n')
}
