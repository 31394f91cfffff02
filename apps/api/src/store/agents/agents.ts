/** The agents that workers have registered, and the workers that are running. */
import type { Agent } from '@rivulet/contract/agents'
import type { AgentSettings, Hello } from '@rivulet/contract/internal'
import { RivuletError } from '@rivulet/protocol'
import { and, asc, eq, inArray, isNull, lt, type SQL, sql } from 'drizzle-orm'
import type { Reach } from '../access/reach.ts'
import type { Database, Transaction } from '../connection/database.ts'
import { msAgo } from '../connection/moments.ts'
import { everyTenant, isOf, type Tenant } from '../connection/tenant.ts'
import { agents, limits, turns, workers } from '../schema.ts'
import { moveTurns } from '../tasks/outbox.ts'

/**
 * An agent that a worker of one tenant registers is that tenant's alone, with a queue of its own; one that a worker of all tenants registers is shared
 * by the tenants that have none of its name. Returns the queues that are named otherwise than their agents.
 */
export async function registerWorker(
  db: Database,
  { tenant, agents: served }: Reach,
  key: string | null,
  hello: Hello,
): Promise<Record<string, string>> {
  const { worker, agents: declared, version, slots, takesQueues = false } = hello
  const names = declared.map(({ name }) => name)
  requireAllowed(served, names)
  return db.transaction(async tx => {
    const queues = await registerAgents(tx, tenant === everyTenant ? null : tenant, declared)
    const renamed = names.filter(name => queues.get(name) !== name)
    if (renamed[0] !== undefined && !takesQueues) throw takenName(renamed[0])
    const row = { key, agents: names.map(name => queues.get(name) ?? name), seenAt: sql`now()`, version, slots }
    const registered = await tx
      .insert(workers)
      .values({ id: worker, ...row })
      .onConflictDoUpdate({ target: workers.id, set: row, setWhere: isWorkerOf(key) })
      .returning({ id: workers.id })
    if (registered.length === 0) throw foreignWorker()
    return Object.fromEntries(renamed.map(name => [name, queues.get(name) ?? name]))
  })
}

/** Returns the queue of each agent. Rows are written in one order, because two workers that lock them in two orders are a deadlock. */
async function registerAgents(tx: Transaction, owner: Tenant | null, declared: Hello['agents']): Promise<Map<string, string>> {
  const wanted = declared.map(rowOf).sort((a, b) => (a.name < b.name ? -1 : 1))
  const known = await ownAgents(tx, owner, wanted)
  for (const row of wanted) {
    const own = known.get(row.name)
    if (own && own.description === row.description && own.settings === row.settings) continue
    const { description, settings } = row
    if (own) await tx.update(agents).set({ description, settings }).where(eq(agents.name, own.name))
    else await addAgent(tx, owner, row)
  }
  const registered = known.size < wanted.length ? await ownAgents(tx, owner, wanted) : known
  return new Map(Array.from(registered, ([name, row]) => [name, row.name]))
}

async function ownAgents(tx: Transaction, owner: Tenant | null, wanted: readonly { name: string }[]) {
  const names = wanted.map(({ name }) => name)
  const rows = await tx
    .select()
    .from(agents)
    .where(and(inArray(agents.agent, names), isOwnedBy(owner)))
  return new Map(rows.map(row => [row.agent, row]))
}

/** The first of a name has a queue of this name. Turns that wait for the agent elsewhere are sent again. */
async function addAgent(tx: Transaction, owner: Tenant | null, row: ReturnType<typeof rowOf>): Promise<void> {
  const add = (name: string) =>
    tx
      .insert(agents)
      .values({ ...row, name, tenant: owner })
      .onConflictDoNothing()
      .returning({ name: agents.name })
  const added = [...(await add(row.name)), ...(await add(`${row.name}@${owner ?? ''}`))]
  if (added.length > 0) await moveTurns(tx, owner, row.name)
}

function isOwnedBy(owner: Tenant | null): SQL {
  return owner === null ? isNull(agents.tenant) : eq(agents.tenant, owner)
}

/** A worker's id belongs to the key that registered it, so that no other key can change what the API knows of the worker. */
export async function requireOwnWorker(db: Database, key: string | null, worker: string): Promise<void> {
  const [known] = await db
    .select({ isOwn: sql<boolean>`${isWorkerOf(key)}` })
    .from(workers)
    .where(eq(workers.id, worker))
  if (known?.isOwn === false) throw foreignWorker()
}

function isWorkerOf(key: string | null): SQL {
  return sql`(${workers.key} is null or ${key}::text is null or ${workers.key} = ${key})`
}

function foreignWorker(): RivuletError {
  return new RivuletError('forbidden', 'Another key has registered a worker with this id')
}

/** The agents by the names of their queues. Throws unless a worker with this reach may take their turns. */
export async function requireServed(db: Database, { tenant, agents: served }: Reach, names: string[]): Promise<Map<string, string>> {
  requireAllowed(served, names)
  const own = and(inArray(agents.agent, names), isOwnedBy(tenant === everyTenant ? null : tenant))
  const rows = await db.select({ queue: agents.name, agent: agents.agent }).from(agents).where(own)
  if (rows.length < new Set(names).size) throw unknownAgent()
  return new Map(rows.map(({ queue, agent }) => [queue, agent]))
}

function requireAllowed(served: Reach['agents'], names: readonly string[]): void {
  if (!served || names.every(name => served.includes(name))) return
  const reason = `This key allows only the agents ${served.join(', ')}`
  throw new RivuletError('forbidden', `${reason}; create a key for others with \`rivulet keys create --agent\``)
}

function rowOf({ name, description, ...settings }: Hello['agents'][number]) {
  return { name, description, settings: Object.keys(settings).length > 0 ? JSON.stringify(settings) : null }
}

function takenName(name: string): RivuletError {
  const reason = `Another tenant, or all tenants, have an agent named ${name}, and this worker is too old to have one of its own`
  const changes = 'upgrade the worker, give the agent another name, or create a key with `rivulet keys create --all-tenants`'
  return new RivuletError('forbidden', `${reason}: ${changes}`)
}

/** Whether a tenant may use an agent, in a query about agents: its own, or a shared one if it has none of this name. */
export function isAgentOf(tenant: Tenant): SQL {
  if (tenant === everyTenant) return sql`true`
  const hasOwn = sql`exists (select from agents own where own.agent = agents.agent and own.tenant = ${tenant})`
  return sql`(agents.tenant = ${tenant} or agents.tenant is null and not ${hasOwn})`
}

/** The same as text, for a statement in which the tenant is an expression. */
export function isAgentOfText(tenant: string): string {
  return `(agents.tenant is null or agents.tenant = ${tenant})`
}

/** The settings that its worker announced. Throws for an agent that this tenant may not use. */
export async function requireAgent(db: Database | Transaction, tenant: Tenant, name: string): Promise<AgentSettings> {
  const known = await findAgent(db, tenant, name)
  if (!known) throw unknownAgent()
  return settingsOf(known.settings)
}

/** The agent of this name that the tenant may use. */
export async function findAgent(db: Database | Transaction, tenant: Tenant, name: string): Promise<typeof agents.$inferSelect | null> {
  const [known] = await db
    .select()
    .from(agents)
    .where(and(eq(agents.agent, name), isAgentOf(tenant)))
  return known ?? null
}

export function unknownAgent(): RivuletError {
  return new RivuletError('unknown_agent', 'No worker has ever registered this agent')
}

/** The names of agents and queues under which metrics count turns of this tenant alone, or of an agent that all tenants share. */
export async function agentLabels(db: Database, tenant: Tenant): Promise<string[]> {
  const isOfOthers = sql`exists (select from agents other where other.agent = agents.agent and other.name <> agents.name)`
  const rows = await db
    .select({ name: agents.name })
    .from(agents)
    .where(and(isAgentOf(tenant), sql`(agents.name <> agents.agent or not ${isOfOthers})`))
  return rows.map(({ name }) => name)
}

/** The agents that this tenant may use, with the tenant's own work; workers are counted for all tenants. */
export async function listAgents(db: Database, tenant: Tenant, workerTimeoutMs: number): Promise<Agent[]> {
  const countTurns = (status: string) =>
    sql<number>`(select count(*) from turns join tasks on tasks.id = turns.task where tasks.agent = agents.agent and turns.status = ${status} and ${isOf(tenant, turns.tenant) ?? sql`true`})`
  const rows = await db
    .select({
      name: agents.agent,
      description: agents.description,
      settings: agents.settings,
      paused: sql<boolean>`exists (select from limits where limits.agent = agents.agent and limits.paused and ${isOf(tenant, limits.tenant) ?? sql`true`})`,
      workers: presentWorkers(workerTimeoutMs).mapWith(Number),
      queued: countTurns('queued').mapWith(Number),
      running: countTurns('running').mapWith(Number),
    })
    .from(agents)
    .where(isAgentOf(tenant))
    .orderBy(asc(agents.agent))
  return rows.map(({ name, description, settings, ...counts }) => ({ name, description, ...settingsOf(settings), ...counts }))
}

/** What an agent has announced, as it was checked when a worker said it. */
export function settingsOf(stored: string | null): AgentSettings {
  return stored === null ? {} : (JSON.parse(stored) as AgentSettings)
}

/** How many workers of an agent are there now, in a query about agents. */
export function presentWorkers(workerTimeoutMs: number): SQL<number> {
  return sql`(select count(*) from workers where agents.name = any(workers.agents) and workers.seen_at > ${msAgo(workerTimeoutMs)})`
}

export async function forgetWorkers(db: Database): Promise<void> {
  await db.delete(workers).where(lt(workers.seenAt, sql`now() - interval '1 day'`))
}
