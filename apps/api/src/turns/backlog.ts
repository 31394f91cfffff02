/**
 * What this process knows of the turns that wait for a share of their agent's workers. It is read once a second and kept up to date by this process's
 * own sends, picks and claims in between.
 *
 * While no turn of an agent waits and its queue is short, a new turn needs no rank: it is sent directly. A process that knows too little only sends a few
 * turns too early; a limit holds all the same, because no turn of a limited agent is claimed without being picked.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../store/connection/database.ts'
import { limitedAgents, queuedByAgent, waitingAgents } from '../store/turns/pick-turns.ts'

/** How many turns of an agent may be in the queue, beside those that run: enough that no worker waits for the next pick. */
export const queueAhead = 64

const sampleMs = 1_000

/** Whose turns share the workers of an agent as one. */
export type Share = { agent: string; tenant: string; concurrencyKey: string | null }

export type Backlog = {
  /** Gives a new turn its share, if no turn of the agent waits for one: returns its rank in the queue. Null: it has to be picked. */
  takeDirect(share: Share): number | null
  /** Whether turns of any agent wait, as far as is known. */
  isWaiting(): boolean
  /** A turn that was picked was sent to the queue. */
  noteSent(agent: string): void
  /** A worker has taken a turn from the queue: there may be room for the next ones. */
  noteClaim(share: Share): void
  /** After a pick: whether turns are left that have no share. */
  notePick(agent: string, isWaiting: boolean): void
  close(): Promise<void>
}

export function watchBacklog({ db, onRoom }: { db: Database; onRoom: () => void }): Backlog {
  const stopping = new AbortController()
  const queued = new Map<string, number>()
  /** By share: the turns that this process has sent directly and that no worker of this process's claims has taken yet. */
  const direct = new Map<string, number>()
  const waiting = new Set<string>()
  let limited: ReadonlySet<string> = new Set()
  const watching = watch()
  return { takeDirect, isWaiting: () => waiting.size > 0, noteSent, noteClaim, notePick, close }

  /** Counted at once: of many requests that come together, only the first may be sent directly. */
  function takeDirect(share: Share): number | null {
    const { agent, tenant } = share
    if (waiting.has(agent) || limited.has(limitName(tenant, agent)) || (queued.get(agent) ?? 0) >= queueAhead) return null
    noteSent(agent)
    const rank = (direct.get(shareName(share)) ?? 0) + 1
    direct.set(shareName(share), rank)
    return rank
  }

  function noteSent(agent: string): void {
    queued.set(agent, (queued.get(agent) ?? 0) + 1)
  }

  function noteClaim(share: Share): void {
    const { agent } = share
    const left = Math.max(0, (queued.get(agent) ?? 0) - 1)
    queued.set(agent, left)
    const name = shareName(share)
    const own = (direct.get(name) ?? 0) - 1
    if (own > 0) direct.set(name, own)
    else direct.delete(name)
    // Not for every claim, because a pick costs the same for one turn as for many.
    if (waiting.has(agent) && left <= queueAhead / 2) onRoom()
  }

  function notePick(agent: string, isWaiting: boolean): void {
    if (isWaiting) waiting.add(agent)
    else waiting.delete(agent)
  }

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sample().catch(() => {})
      await sleep(sampleMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  async function sample(): Promise<void> {
    const [counts, agents, pairs] = await Promise.all([queuedByAgent(db), waitingAgents(db), limitedAgents(db)])
    queued.clear()
    for (const { agent, count } of counts) queued.set(agent, count)
    if (queued.size === 0) direct.clear()
    waiting.clear()
    for (const agent of agents) waiting.add(agent)
    limited = new Set(pairs.map(({ tenant, agent }) => limitName(tenant, agent)))
    // Room may have come by what no process notices: a worker that died, a minute that passed, an agent that goes on.
    if (waiting.size > 0) onRoom()
  }

  async function close(): Promise<void> {
    stopping.abort()
    await watching
  }
}

function limitName(tenant: string, agent: string): string {
  return `${tenant} ${agent}`
}

function shareName({ agent, tenant, concurrencyKey }: Share): string {
  return `${tenant} ${agent} ${concurrencyKey ?? ''}`
}
