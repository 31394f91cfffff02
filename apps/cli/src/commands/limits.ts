/** `rivulet limits`: how much of each agent the tenant's own tasks may use. */
import type { AgentLimits } from '@rivulet/client'
import { type Command, InvalidArgumentError } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../connection.ts'
import type { Context } from '../context.ts'
import { toJsonLine } from '../terminal/json-line.ts'
import { formatTable } from '../terminal/table.ts'

type Common = { url?: string; key?: string; json?: boolean }
type SetOptions = Common & { concurrency?: number; perKey?: number; perMinute?: number; weight?: Record<string, number> }

export function addLimitsCommands(program: Command, context: Context): void {
  const limits = program.command('limits').description('limit how much of an agent the tasks of this tenant may use')
  const add = (command: Command) => addConnectionOptions(command.option('--json', 'print it as JSON'))
  add(limits.command('list', { isDefault: true }).description('list the limits').argument('[agent]', 'only those of this agent')).action(
    (agent: string | undefined, options: Common) => list(context, agent, options),
  )
  add(
    limits
      .command('set')
      .description('replace the limits of an agent')
      .argument('<agent>', 'its name')
      .option('--concurrency <turns>', 'turns of the agent at a time', parseCount)
      .option('--per-key <turns>', 'turns of one concurrency key at a time', parseCount)
      .option('--per-minute <turns>', 'turns of one concurrency key that start within a minute', parseCount)
      .option('--weight <key=number>', 'the share of a concurrency key, where others have 1 (repeatable)', parseWeight),
  ).action((agent: string, options: SetOptions) => set(context, agent, options))
  add(limits.command('remove').description('remove the limits of an agent').argument('<agent>', 'its name')).action(
    async (agent: string, options: Common) => {
      await connect(connectionOf(options, context.environment)).limits.remove(agent)
      context.out.write(options.json ? toJsonLine({ removed: agent }) : `${agent} has no limits\n`)
    },
  )
}

async function list({ environment, out }: Context, agent: string | undefined, options: Common): Promise<void> {
  const calls = connect(connectionOf(options, environment)).limits
  const found = agent === undefined ? await calls.list() : [await calls.get(agent)]
  if (options.json) return out.write(toJsonLine({ data: found }))
  out.write(found.length > 0 ? formatTable(['agent', 'concurrency', 'per key', 'per minute', 'weights'], found.map(rowOf)) : 'no limits\n')
}

async function set({ environment, out }: Context, agent: string, options: SetOptions): Promise<void> {
  const { concurrency, perKey, perMinute, weight: weights } = options
  const wanted = {
    ...(concurrency !== undefined && { concurrency }),
    ...(perKey !== undefined && { perKey }),
    ...(perMinute !== undefined && { perMinute }),
    ...(weights && { weights }),
  }
  const limits = await connect(connectionOf(options, environment)).limits.set(agent, wanted)
  out.write(
    options.json ? toJsonLine({ limits }) : formatTable(['agent', 'concurrency', 'per key', 'per minute', 'weights'], [rowOf(limits)]),
  )
}

function rowOf({ agent, concurrency, perKey, perMinute, weights = {} }: AgentLimits): string[] {
  const shares = Object.entries(weights).map(([key, weight]) => `${key}=${weight}`)
  return [agent, ...[concurrency, perKey, perMinute].map(limit => String(limit ?? '–')), shares.join(' ')]
}

function parseCount(value: string): number {
  if (!/^[1-9]\d{0,6}$/.test(value)) throw new InvalidArgumentError('Use a whole number of at least 1.')
  return Number(value)
}

function parseWeight(value: string, before: Record<string, number> = {}): Record<string, number> {
  const [, key, weight] = /^(.+)=(\d+(?:\.\d+)?)$/.exec(value) ?? []
  if (!key || !weight) throw new InvalidArgumentError('Use key=number.')
  return { ...before, [key]: Number(weight) }
}
