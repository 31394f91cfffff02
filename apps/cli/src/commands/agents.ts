/** `rivulet agents`: the agents and their load; pauses, resumes and forgets them. */
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../connection.ts'
import type { Context } from '../context.ts'
import { toJsonLine } from '../terminal/json-line.ts'
import { formatTable } from '../terminal/table.ts'

type AgentsOptions = { url?: string; key?: string; json?: boolean }

export function addAgentsCommand(program: Command, context: Context): void {
  const agents = program.command('agents').description('list, pause, resume and forget agents')
  const add = (command: Command) => addConnectionOptions(command.option('--json', 'print it as JSON'))
  add(agents.command('list', { isDefault: true }).description('list the agents')).action((options: AgentsOptions) =>
    listAgents(context, options),
  )
  add(agents.command('pause').description('start no turns of an agent until it is resumed').argument('<agent>', 'its name')).action(
    (name: string, options: AgentsOptions) => change(context, name, options, 'pause'),
  )
  add(agents.command('resume').description('start turns of a paused agent again').argument('<agent>', 'its name')).action(
    (name: string, options: AgentsOptions) => change(context, name, options, 'resume'),
  )
  add(agents.command('remove').description('forget an agent without workers').argument('<agent>', 'its name')).action(
    async (name: string, options: AgentsOptions) => {
      await connect(connectionOf(options, context.environment)).agents.remove(name)
      context.out.write(options.json ? toJsonLine({ removed: name }) : `${name} is removed\n`)
    },
  )
}

async function change({ environment, out }: Context, name: string, options: AgentsOptions, call: 'pause' | 'resume'): Promise<void> {
  const agent = await connect(connectionOf(options, environment)).agents[call](name)
  out.write(options.json ? toJsonLine({ agent }) : `${name} is ${agent.paused ? 'paused' : 'active'}\n`)
}

async function listAgents({ environment, out }: Context, options: AgentsOptions): Promise<void> {
  const agents = await connect(connectionOf(options, environment)).agents.list()
  if (options.json) return out.write(toJsonLine({ data: agents }))
  const rows = agents.map(({ name, paused, workers, queued, running, description }) => [
    paused ? `${name} (paused)` : name,
    String(workers),
    String(queued),
    String(running),
    description,
  ])
  out.write(rows.length > 0 ? formatTable(['agent', 'workers', 'queued', 'running', 'description'], rows) : 'no agents: start a worker\n')
}
