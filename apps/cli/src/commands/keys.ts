/** `rivulet keys`: manages the API keys of this installation, in its database, like `migrate`; a running API notices within half a minute. */
import type { KeyInfo, Keyring, Scope } from '@rivulet/api/keys'
import { type Command, InvalidArgumentError } from 'commander'
import { readConfig } from '../config.ts'
import type { Context } from '../context.ts'
import { UsageError } from '../exit-code.ts'
import { openPostgres } from '../platform/engines.ts'
import { findRunning } from '../platform/running-note.ts'
import { formatAge, parseDuration } from '../terminal/duration.ts'
import { toJsonLine } from '../terminal/json-line.ts'
import { formatTable } from '../terminal/table.ts'

type CreateOptions = {
  tenant?: string
  scope?: string[]
  allTenants?: boolean
  agent?: string[]
  name?: string
  expires?: number
  json?: boolean
}

/** Loaded when it is needed: it brings the database driver along, and no other command wants that. */
const load = () => import('@rivulet/api/keys')

export function addKeysCommands(program: Command, context: Context): void {
  const keys = program.command('keys').description('create, list and revoke API keys')
  keys
    .command('create')
    .description('create a key and show it once')
    .option('--tenant <tenant>', 'the tenant of the key (default: default)')
    .option('--scope <scope>', 'tasks:read, tasks:write, admin or worker (repeatable; default: tasks:read and tasks:write)', add)
    .option('--all-tenants', 'with the scope worker: allow the turns of all tenants')
    .option('--agent <agent>', 'with the scope worker: allow only this agent (repeatable; default: all)', add)
    .option('--name <name>', 'a description of the key')
    .option('--expires <time>', 'how long the key is valid: 90d, 12h, 30m (default: forever)', parseTime)
    .option('--json', 'print it as JSON')
    .action((options: CreateOptions) => withKeyring(context, keyring => create(context, keyring, options)))
  keys
    .command('list')
    .description('list all keys, oldest first')
    .option('--json', 'print them as JSON')
    .action((options: { json?: boolean }) => withKeyring(context, keyring => list(context, keyring, options)))
  keys
    .command('revoke')
    .description('revoke a key; its open streams end within 30 s')
    .argument('<id>', 'the id of the key')
    .option('--json', 'print it as JSON')
    .action((id: string, options: { json?: boolean }) => withKeyring(context, keyring => revoke(context, keyring, id, options)))
}

async function create({ environment, out, err }: Context, keyring: Keyring, options: CreateOptions): Promise<void> {
  const { defaultTenant, readKeyPepper, scopes } = await load()
  const { tenant = defaultTenant, scope: granted = ['tasks:read', 'tasks:write'], name = '', expires, json } = options
  const { allTenants, agent: agents } = options
  if (allTenants && options.tenant !== undefined) throw new UsageError('Use either --tenant or --all-tenants')
  if ((allTenants || agents) && !granted.includes('worker')) throw new UsageError('--all-tenants and --agent need --scope worker')
  const unknown = granted.filter(scope => !scopes.includes(scope as Scope))
  if (unknown.length > 0) throw new UsageError(`A scope must be one of ${scopes.join(', ')}`)
  const expiresAt = expires === undefined ? undefined : new Date(Date.now() + expires)
  const wish = { tenant, name, scopes: [...new Set(granted as Scope[])], expiresAt, allTenants, agents: agents && [...new Set(agents)] }
  const created = await keyring.create(wish, readKeyPepper(environment))
  if (json) return out.write(toJsonLine(created))
  out.write(`${created.key}\n`)
  err.write(`This key is shown once. Its id, for \`rivulet keys revoke\`, is ${created.id}.\n`)
}

async function list({ out }: Context, keyring: Keyring, { json }: { json?: boolean }): Promise<void> {
  const keys = await keyring.list()
  if (json) return out.write(toJsonLine({ data: keys }))
  const now = Date.now()
  const rows = keys.map(key => [
    ...[key.id, key.tenant, key.scopes.join(' '), workOf(key), stateOf(key, now)],
    ...[key.lastUsedAt ? formatAge(key.lastUsedAt, now) : 'never', key.name],
  ])
  out.write(rows.length > 0 ? formatTable(['id', 'tenant', 'scopes', 'works for', 'state', 'used', 'name'], rows) : 'no keys\n')
}

async function revoke({ out }: Context, keyring: Keyring, id: string, { json }: { json?: boolean }): Promise<void> {
  const revoked = await keyring.revoke(id)
  if (!revoked) throw new Error('No key has this id; rivulet keys list shows the ids')
  out.write(json ? toJsonLine(revoked) : `${revoked.id} is revoked\n`)
}

async function withKeyring({ environment, err }: Context, work: (keyring: Keyring) => Promise<void>): Promise<void> {
  // The answer is alone on stdout, so that it can be caught in a variable.
  const write = (line: string) => err.write(`${line}\n`)
  const config = readConfig(environment)
  const databaseUrl = config.databaseUrl ?? findRunning(config.dataDir)?.databaseUrl
  const postgres = await openPostgres({ ...config, databaseUrl, environment, write })
  const keyring = (await load()).openKeyring(postgres.url)
  try {
    await work(keyring)
  } finally {
    await keyring.close()
    await postgres.stop()
  }
}

/** What a worker with this key may run. */
function workOf({ tenant, scopes, allTenants, agents }: KeyInfo): string {
  if (!scopes.includes('worker')) return '-'
  return [allTenants ? 'all tenants' : tenant, ...(agents ? [`(${agents.join(' ')})`] : [])].join(' ')
}

function stateOf({ revokedAt, expiresAt }: KeyInfo, now: number): string {
  if (revokedAt) return 'revoked'
  if (!expiresAt) return 'good'
  return Date.parse(expiresAt) <= now ? 'expired' : `good until ${expiresAt.slice(0, 10)}`
}

function add(scope: string, earlier: string[] = []): string[] {
  return [...earlier, scope]
}

function parseTime(text: string): number {
  const ms = parseDuration(text)
  if (ms === null || ms === 0) throw new InvalidArgumentError('Write it as 90d, 12h or 30m.')
  return ms
}
