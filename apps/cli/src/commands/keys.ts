/**
 * `rivulet keys`: manages API keys. With a URL it asks the API there, with the key of an admin. Otherwise it works on the database itself, like `migrate`:
 * that is how an installation gets its first key. Other APIs notice a change within half a minute.
 */
import type { KeyCalls } from '@rivulet/client'
import { createKeyBody, type Key, listKeysQuery, type NewKey, rotateKeyBody } from '@rivulet/contract/keys'
import { detailsOf } from '@rivulet/protocol'
import { type Command, InvalidArgumentError } from 'commander'
import type { z } from 'zod'
import { readConfig } from '../config.ts'
import { addConnectionOptions, connect, connectionOf } from '../connection.ts'
import type { Context } from '../context.ts'
import { everyPage } from '../every-page.ts'
import { UsageError } from '../exit-code.ts'
import { openPostgres } from '../platform/engines.ts'
import { findRunning } from '../platform/running-note.ts'
import { formatAge, parseDuration } from '../terminal/duration.ts'
import { toJsonLine } from '../terminal/json-line.ts'
import { formatTable } from '../terminal/table.ts'

type CommonOptions = { url?: string; key?: string; json?: boolean }
type CreateOptions = CommonOptions & {
  tenant?: string
  scope?: string[]
  allTenants?: boolean
  agent?: string[]
  agents?: string[]
  name?: string
  expires?: number
}

export function addKeysCommands(program: Command, context: Context): void {
  const keys = program.command('keys').description('create, list, rotate and revoke API keys')
  const add = (command: Command) => addConnectionOptions(command.option('--json', 'print it as JSON'))
  add(
    keys
      .command('create')
      .description('create a key and show it once')
      .option('--tenant <tenant>', 'the tenant of the key (default: that of the calling key, or default)')
      .option(
        '--scope <scope>',
        'tasks:read, tasks:write, admin, metrics or worker (repeatable; default: tasks:read and tasks:write)',
        append,
      )
      .option('--all-tenants', 'with the scope worker or metrics: for all tenants')
      .option('--agent <agent>', 'allow only this agent and its tasks (repeatable; default: all)', append)
      .option('--agents <agents>', 'the same for several, separated by commas', appendAll)
      .option('--name <name>', 'a description of the key')
      .option('--expires <time>', 'how long the key is valid: 90d, 12h, 30m (default: forever)', parseLifetime),
  ).action((options: CreateOptions) => withKeys(context, options, calls => create(context, calls, options)))
  add(keys.command('list').description('list all keys, oldest first')).action((options: CommonOptions) =>
    withKeys(context, options, calls => list(context, calls, options)),
  )
  add(
    keys
      .command('rotate')
      .description('create a key in place of another one, and show it once; both are valid for a while')
      .argument('<id>', 'the id of the old key')
      .option('--overlap <time>', 'how long the old key stays valid: 1h, 30m, 0s (default: 1d)', parseSeconds),
  ).action((id: string, options: CommonOptions & { overlap?: number }) =>
    withKeys(context, options, calls => rotate(context, calls, id, options)),
  )
  add(keys.command('revoke').description('revoke a key; its open streams end within 30 s').argument('<id>', 'the id of the key')).action(
    (id: string, options: CommonOptions) => withKeys(context, options, calls => revoke(context, calls, id, options)),
  )
}

async function create(context: Context, calls: KeyCalls, options: CreateOptions): Promise<void> {
  const { tenant, scope: scopes, name, expires: expiresInSeconds, allTenants, agent, agents: several } = options
  const agents = agent || several ? [...(agent ?? []), ...(several ?? [])] : undefined
  const body = checked(createKeyBody, { tenant, scopes, name, expiresInSeconds, allTenants, agents })
  showNew(context, await calls.create(body), options)
}

async function rotate(context: Context, calls: KeyCalls, id: string, options: CommonOptions & { overlap?: number }): Promise<void> {
  const rotated = await calls.rotate(id, checked(rotateKeyBody, { overlapSeconds: options.overlap }))
  showNew(context, rotated, options)
  if (!options.json) context.err.write(`The old key ${id} is valid until ${rotated.replaced.expiresAt}.\n`)
}

function showNew({ out, err }: Context, { key, secret, ...rest }: NewKey, { json }: CommonOptions): void {
  if (json) out.write(toJsonLine({ ...key, key: secret, ...rest }))
  else {
    out.write(`${secret}\n`)
    err.write(`This key is shown once. Its id, for \`rivulet keys revoke\`, is ${key.id}.\n`)
  }
}

async function list({ out }: Context, calls: KeyCalls, { json }: CommonOptions): Promise<void> {
  const keys = await everyPage(cursor => calls.list({ cursor }))
  if (json) return out.write(toJsonLine({ data: keys }))
  const now = Date.now()
  const rows = keys.map(key => [
    ...[key.id, key.tenant, key.scopes.join(' '), workOf(key), stateOf(key, now)],
    ...[key.lastUsedAt ? formatAge(key.lastUsedAt, now) : 'never', key.name],
  ])
  out.write(rows.length > 0 ? formatTable(['id', 'tenant', 'scopes', 'works for', 'state', 'used', 'name'], rows) : 'no keys\n')
}

async function revoke({ out }: Context, calls: KeyCalls, id: string, { json }: CommonOptions): Promise<void> {
  const revoked = await calls.revoke(id)
  out.write(json ? toJsonLine(revoked) : `${revoked.id} is revoked\n`)
}

/** DATABASE_URL comes before RIVULET_URL, because a deployment's environment has both, and its first key can only come from the database. */
async function withKeys(context: Context, { url, key }: CommonOptions, work: (calls: KeyCalls) => Promise<void>): Promise<void> {
  const { environment } = context
  const isCall = url !== undefined || key !== undefined || (!environment.DATABASE_URL && Boolean(environment.RIVULET_URL))
  if (!isCall) return withDatabase(context, work)
  const { keys } = connect(connectionOf({ ...(url !== undefined && { url }), ...(key !== undefined && { key }) }, environment))
  await work(keys)
}

async function withDatabase({ environment, err }: Context, work: (calls: KeyCalls) => Promise<void>): Promise<void> {
  // The result is alone on stdout, so that a script can read it into a variable.
  const write = (line: string) => err.write(`${line}\n`)
  const config = readConfig(environment)
  const databaseUrl = config.databaseUrl ?? findRunning(config.dataDir)?.databaseUrl
  const postgres = await openPostgres({ ...config, databaseUrl, environment, write })
  // Loaded only here, because it brings the database driver, which no other command needs.
  const { openKeyring, readKeyPepper } = await import('@rivulet/api/keys')
  const keyring = openKeyring(postgres.url, () => readKeyPepper(environment))
  try {
    await work({
      create: body => keyring.create(createKeyBody.parse(body)),
      list: query => keyring.list(listKeysQuery.parse(query)),
      revoke: id => keyring.revoke(id),
      rotate: (id, body) => keyring.rotate(id, rotateKeyBody.parse(body)),
    })
  } finally {
    await keyring.close()
    await postgres.stop()
  }
}

/** The request as the API would check it, so that a wrong option is a usage error wherever the keys are. */
function checked<T>(schema: z.ZodType<T>, request: object): T {
  const parsed = schema.safeParse(request)
  if (parsed.success) return parsed.data
  throw new UsageError(
    detailsOf(parsed.error)
      .map(({ path, reason }) => `${path.slice(1)}: ${reason}`)
      .join('; '),
  )
}

/** What a worker with this key may run, and a caller use. */
function workOf({ tenant, scopes, allTenants, agents }: Key): string {
  const names = agents ? [`(${agents.join(' ')})`] : []
  if (!scopes.includes('worker') && !scopes.includes('metrics')) return names[0] ?? '-'
  return [allTenants ? 'all tenants' : tenant, ...names].join(' ')
}

function stateOf({ revokedAt, expiresAt, replacedBy }: Key, now: number): string {
  if (revokedAt) return 'revoked'
  if (!expiresAt) return 'good'
  if (Date.parse(expiresAt) <= now) return 'expired'
  return replacedBy ? `replaced, good until ${expiresAt}` : `good until ${expiresAt.slice(0, 10)}`
}

function append(value: string, earlier: string[] = []): string[] {
  return [...earlier, value]
}

function appendAll(value: string, earlier: string[] = []): string[] {
  return [...earlier, ...value.split(',').map(name => name.trim())]
}

function parseSeconds(text: string): number {
  const ms = parseDuration(text)
  if (ms === null) throw new InvalidArgumentError('Write it as 90d, 12h or 30m.')
  return ms / 1_000
}

function parseLifetime(text: string): number {
  const seconds = parseSeconds(text)
  if (seconds === 0) throw new InvalidArgumentError('Write it as 90d, 12h or 30m.')
  return seconds
}
