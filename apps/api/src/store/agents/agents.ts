/** The agents that workers have registered, and the workers that are running. */
import { type Agent, type AgentSettings, type Hello, RivuletError } from '@rivulet/protocol'
import { and, asc, eq, inArray, isNull, lt, ne, or, type SQL, sql } from 'drizzle-orm'
import type { Reach } from '../access/reach.ts'
import type { Database, Transaction } from '../connection/database.ts'
import { msAgo } from '../connection/moments.ts'
import { everyTenant, isOf, type Tenant } from '../connection/tenant.ts'
import { agents, limits, turns, workers } from '../schema.ts'

/**
 * An agent that a worker of one tenant registers first is that tenant's alone: its queue never holds turns that the worker may not run. Once a
 * worker of all tenants registers it, all tenants share it.
 */
export async function registerWorker(db: Database, { tenant, agents: served }: Reach, key: string | null, hello: Hello): Promise<void> {
  const { worker, agents: declared, version, slots } = hello
  const names = declared.map(({ name }) => name)
  requireAllowed(served, names)
  const owner = tenant === everyTenant ? null : tenant
  await db.transaction(async tx => {
    if (declared.length > 0) {
      const rows = declared.map(agent => ({ ...rowOf(agent), tenant: owner })).sort((a, b) => (a.name < b.name ? -1 : 1))
      const isOwn = sql`(excluded.tenant is null or ${agents.tenant} = excluded.tenant)`
      const changed = sql`(${agents.description}, ${agents.tenant}, ${agents.settings}) is distinct from (excluded.description, excluded.tenant, excluded.settings)`
      await tx
        .insert(agents)
        .values(rows)
        .onConflictDoUpdate({
          target: agents.name,
          set: { description: sql`excluded.description`, tenant: sql`excluded.tenant`, settings: sql`excluded.settings` },
          setWhere: sql`${isOwn} and ${changed}`,
        })
    }
    if (owner !== null) await requireOwned(tx, owner, names)
    const row = { key, agents: names, seenAt: sql`now()`, version, slots }
    const registered = await tx
      .insert(workers)
      .values({ id: worker, ...row })
      .onConflictDoUpdate({ target: workers.id, set: row, setWhere: isWorkerOf(key) })
      .returning({ id: workers.id })
    if (registered.length === 0) throw foreignWorker()
  })
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

/** Throws unless a worker with this reach may take the turns of these agents. */
export async function requireServed(db: Database, { tenant, agents: served }: Reach, names: string[]): Promise<void> {
  requireAllowed(served, names)
  const known = await db.select({ name: agents.name }).from(agents).where(inArray(agents.name, names))
  if (known.length < new Set(names).size) throw unknownAgent()
  if (tenant !== everyTenant) await requireOwned(db, tenant, names)
}

function requireAllowed(served: Reach['agents'], names: readonly string[]): void {
  if (!served || names.every(name => served.includes(name))) return
  const reason = `This key allows only the agents ${served.join(', ')}`
  throw new RivuletError('forbidden', `${reason}; create a key for others with \`rivulet keys create --agent\``)
}

function rowOf({ name, description, ...settings }: Hello['agents'][number]) {
  return { name, description, settings: Object.keys(settings).length > 0 ? JSON.stringify(settings) : null }
}

async function requireOwned(db: Database | Transaction, owner: Tenant, names: string[]): Promise<void> {
  const foreign = and(inArray(agents.name, names), or(isNull(agents.tenant), ne(agents.tenant, owner)))
  const [found] = await db.select({ name: agents.name }).from(agents).where(foreign).limit(1)
  if (!found) return
  const reason = `The agent ${found.name} does not belong to this key's tenant alone`
  throw new RivuletError('forbidden', `${reason}: give the agent another name, or create a key with \`rivulet keys create --all-tenants\``)
}

/** Whether a tenant may use an agent, in a query about agents. */
export function isAgentOf(tenant: Tenant): SQL | undefined {
  return or(isNull(agents.tenant), isOf(tenant, agents.tenant) ?? sql`true`)
}

/** The same as text, for a statement in which the tenant is an expression. */
export function isAgentOfText(tenant: string): string {
  return `(agents.tenant is null or agents.tenant = ${tenant})`
}

/** The settings that its worker announced. Throws for an agent that this tenant may not use. */
export async function requireAgent(db: Database | Transaction, tenant: Tenant, name: string): Promise<AgentSettings> {
  const [known] = await db
    .select({ settings: agents.settings })
    .from(agents)
    .where(and(eq(agents.name, name), isAgentOf(tenant)))
  if (!known) throw unknownAgent()
  return settingsOf(known.settings)
}

export function unknownAgent(): RivuletError {
  return new RivuletError('unknown_agent', 'No worker has ever registered this agent')
}

export async function agentNames(db: Database, tenant: Tenant): Promise<string[]> {
  const rows = await db.select({ name: agents.name }).from(agents).where(isAgentOf(tenant))
  return rows.map(({ name }) => name)
}

/** The agents that this tenant may use, with the tenant's own work; workers are counted for all tenants. */
export async function listAgents(db: Database, tenant: Tenant, workerTimeoutMs: number): Promise<Agent[]> {
  const countTurns = (status: string) =>
    sql<number>`(select count(*) from turns join tasks on tasks.id = turns.task where tasks.agent = agents.name and turns.status = ${status} and ${isOf(tenant, turns.tenant) ?? sql`true`})`
  const rows = await db
    .select({
      name: agents.name,
      description: agents.description,
      settings: agents.settings,
      paused: sql<boolean>`exists (select from limits where limits.agent = agents.name and limits.paused and ${isOf(tenant, limits.tenant) ?? sql`true`})`,
      workers: presentWorkers(workerTimeoutMs).mapWith(Number),
      queued: countTurns('queued').mapWith(Number),
      running: countTurns('running').mapWith(Number),
    })
    .from(agents)
    .where(isAgentOf(tenant))
    .orderBy(asc(agents.name))
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
