/** The limits of a tenant for its agents, and the agents that it has paused. A row without a limit that is not paused is removed: it would be no row. */
import type { AgentLimits, AgentLimitsInput } from '@rivulet/contract/limits'
import { RivuletError } from '@rivulet/protocol'
import { and, asc, eq, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { defaultTenant, isOf, type Tenant } from '../connection/tenant.ts'
import { agents, limits } from '../schema.ts'
import { moveTurns } from '../tasks/outbox.ts'
import { findAgent, presentWorkers } from './agents.ts'

type LimitsRow = typeof limits.$inferSelect

export async function listLimits(db: Database, tenant: Tenant): Promise<AgentLimits[]> {
  const rows = await db.select().from(limits).where(isOf(tenant, limits.tenant)).orderBy(asc(limits.agent))
  return rows.filter(hasLimit).map(toLimits)
}

export async function findLimits(db: Database, tenant: Tenant, agent: string): Promise<AgentLimits> {
  const [row] = await db.select().from(limits).where(isLimitOf(tenant, agent))
  if (!row || !hasLimit(row)) throw new RivuletError('not_found', 'This agent has no limits')
  return toLimits(row)
}

export async function setLimits(db: Database | Transaction, tenant: Tenant, agent: string, wanted: AgentLimitsInput): Promise<AgentLimits> {
  await requireAgent(db, tenant, agent)
  const { concurrency = null, perKey = null, perMinute = null, weights = {} } = wanted
  const set = { concurrency, perKey, perMinute, weights }
  const [row] = await db
    .insert(limits)
    .values({ tenant, agent, ...set })
    .onConflictDoUpdate({ target: [limits.tenant, limits.agent], set })
    .returning()
  if (!row) throw new Error('The limits were not stored')
  return toLimits(row)
}

export async function removeLimits(db: Database | Transaction, tenant: Tenant, agent: string): Promise<void> {
  const none = { concurrency: null, perKey: null, perMinute: null, weights: {} }
  await db.update(limits).set(none).where(isLimitOf(tenant, agent))
  await removeEmpty(db, tenant, agent)
}

export async function pauseAgent(db: Database | Transaction, tenant: Tenant, agent: string, paused: boolean): Promise<void> {
  await requireAgent(db, tenant, agent)
  if (paused) {
    const target = [limits.tenant, limits.agent]
    await db.insert(limits).values({ tenant, agent, paused }).onConflictDoUpdate({ target, set: { paused } })
    return
  }
  await db.update(limits).set({ paused }).where(isLimitOf(tenant, agent))
  await removeEmpty(db, tenant, agent)
}

/**
 * Forgets an agent without workers; a worker that starts later registers it again. An agent that all tenants share belongs to the default tenant.
 *
 * @param db a connection of the server, because a tenant may not write the table of agents
 */
export async function removeAgent(db: Database | Transaction, tenant: Tenant, agent: string, workerTimeoutMs: number): Promise<void> {
  const found = await findAgent(db, tenant, agent)
  if (!found) throw unknownAgent()
  if (found.tenant !== tenant && !(found.tenant === null && tenant === defaultTenant))
    throw new RivuletError('forbidden', 'All tenants share this agent; only the default tenant can remove it')
  const [served] = await db
    .select({ workers: presentWorkers(workerTimeoutMs).mapWith(Number) })
    .from(agents)
    .where(eq(agents.name, found.name))
  if (served && served.workers > 0)
    throw new RivuletError('agent_in_use', `Live workers run this agent: ${served.workers}; stop them first`)
  await db.transaction(async tx => {
    await tx.delete(agents).where(eq(agents.name, found.name))
    await moveTurns(tx, found.tenant, agent)
  })
}

async function requireAgent(db: Database | Transaction, tenant: Tenant, agent: string): Promise<void> {
  if (!(await findAgent(db, tenant, agent))) throw unknownAgent()
}

async function removeEmpty(db: Database | Transaction, tenant: Tenant, agent: string): Promise<void> {
  const isEmpty = sql`${limits.concurrency} is null and ${limits.perKey} is null and ${limits.perMinute} is null
    and ${limits.weights} = '{}' and not ${limits.paused}`
  await db.delete(limits).where(and(isLimitOf(tenant, agent), isEmpty))
}

function isLimitOf(tenant: Tenant, agent: string) {
  return and(eq(limits.tenant, tenant), eq(limits.agent, agent))
}

function hasLimit({ concurrency, perKey, perMinute, weights }: LimitsRow): boolean {
  return concurrency !== null || perKey !== null || perMinute !== null || Object.keys(weights).length > 0
}

function toLimits({ agent, concurrency, perKey, perMinute, weights }: LimitsRow): AgentLimits {
  return {
    agent,
    ...(concurrency !== null && { concurrency }),
    ...(perKey !== null && { perKey }),
    ...(perMinute !== null && { perMinute }),
    ...(Object.keys(weights).length > 0 && { weights }),
  }
}

function unknownAgent(): RivuletError {
  return new RivuletError('not_found', 'No worker has ever registered this agent')
}
