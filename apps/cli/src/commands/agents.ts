/** `rivulet agents`: the agents and their load. */
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../connection.ts'
import type { Context } from '../context.ts'
import { toJsonLine } from '../terminal/json-line.ts'
import { formatTable } from '../terminal/table.ts'

type AgentsOptions = { url?: string; key?: string; json?: boolean }

export function addAgentsCommand(program: Command, context: Context): void {
  const command = program.command('agents').description('list the agents').option('--json', 'print them as JSON')
  addConnectionOptions(command).action((options: AgentsOptions) => listAgents(context, options))
}

async function listAgents({ environment, out }: Context, options: AgentsOptions): Promise<void> {
  const agents = await connect(connectionOf(options, environment)).agents.list()
  if (options.json) return out.write(toJsonLine({ data: agents }))
  const rows = agents.map(({ name, workers, queued, running, description }) => [
    name,
    String(workers),
    String(queued),
    String(running),
    description,
  ])
  out.write(rows.length > 0 ? formatTable(['agent', 'workers', 'queued', 'running', 'description'], rows) : 'no agents: start a worker\n')
}
