/**
 * What this process knows of the turns that wait for a share of their agent's workers. It is read once a second and kept up to date by this process's
 * own sends, picks and claims in between. Agents are known by their queues, because tenants may have agents of one name.
 *
 * While no turn of an agent waits and its queue is short, a new turn needs no rank: it is sent directly. So is a turn of a key that has no waiting turn, while
 * a slot is free. A process that knows too little only sends a few turns too early; a limit holds all the same, because no turn of a limited agent is claimed
 * without being picked.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../store/connection/database.ts'
import { limitedAgents, namedQueues, type Picking, queuedByAgent, type Share, waitingAgents } from '../store/turns/pick-turns.ts'

/** How many turns of an agent may be in the queue, beside those that run: enough that no worker waits for the next pick. */
export const queueAhead = 64

const sampleMs = 1_000

/** How long slots are kept free for other keys after a second key has used the agent. */
const sharedMs = 60_000

/** With more claims in a second than these, the next slot is free soon enough, and a slot that waits for a pick would cost more than it gains. */
const maxSpareClaims = 50

export type Backlog = {
  /** Gives a new turn its share, if no turn of the agent waits for one, or a slot is kept free for it: returns its rank. Null: it has to be picked. */
  takeDirect(share: Share): number | null
  /** A turn has ended: there may be room for the next one. */
  noteEnd(): void
  /** Whether the next pick keeps slots of the agent free for other keys. */
  keepsSpare(agent: string): boolean
  /** A turn that was picked was sent to the queue. */
  noteSent(agent: string): void
  /** A worker has taken a turn from the queue: there may be room for the next ones. */
  noteClaim(share: Share): void
  /** What a pick has left. */
  notePick(agent: string, left: Omit<Picking, 'picked'>): void
  /** By queue with waiting turns: the slots that are free for turns of other keys. */
  spareSlots(): ReadonlyMap<string, number>
  close(): Promise<void>
}

/** The turns of an agent that wait: `shares` are theirs, and no others may take the spare slots. */
type Line = { spare: number; shares: ReadonlySet<string> }

/** `onRoom`: there may be room for waiting turns of the agent. */
export function watchBacklog({ db, onRoom }: { db: Database; onRoom: (agent: string) => void }): Backlog {
  const stopping = new AbortController()
  const queued = new Map<string, number>()
  /** By share: the turns that this process has sent directly and that no worker of this process's claims has taken yet. */
  const direct = new Map<string, number>()
  const lines = new Map<string, Line>()
  /** When turns of more than one key were last seen. */
  const sharedAt = new Map<string, number>()
  /** Claims since the last sample, and in the second before it. */
  let claims = new Map<string, number>()
  let lastClaims = claims
  let limited: ReadonlySet<string> = new Set()
  /** By tenant and agent, or by agent for a shared one. */
  let queues: ReadonlyMap<string, string> = new Map()
  const watching = watch()
  return { takeDirect, keepsSpare, noteSent, noteClaim, noteEnd, notePick, spareSlots, close }

  /** Counted at once: of many requests that come together, only the first may be sent directly. */
  function takeDirect(wanted: Share): number | null {
    const share = inQueue(wanted)
    const { agent } = share
    if (limited.has(limitName(wanted.tenant, wanted.agent)) || (queued.get(agent) ?? 0) >= queueAhead) return null
    const line = lines.get(agent)
    if (line && !takeSpare(line, share)) return null
    noteSent(agent)
    const rank = (direct.get(shareName(share)) ?? 0) + 1
    direct.set(shareName(share), rank)
    return rank
  }

  function inQueue({ agent, tenant, concurrencyKey }: Share): Share {
    return { agent: queues.get(limitName(tenant, agent)) ?? queues.get(agent) ?? agent, tenant, concurrencyKey }
  }

  function takeSpare(line: Line, share: Share): boolean {
    if (line.spare < 1 || line.shares.has(shareName(share))) return false
    line.spare -= 1
    sharedAt.set(share.agent, performance.now())
    return true
  }

  function keepsSpare(agent: string): boolean {
    const at = sharedAt.get(agent)
    return at !== undefined && performance.now() - at < sharedMs && Math.max(countOf(claims), countOf(lastClaims)) <= maxSpareClaims

    function countOf(counts: ReadonlyMap<string, number>): number {
      return counts.get(agent) ?? 0
    }
  }

  function noteSent(agent: string): void {
    queued.set(agent, (queued.get(agent) ?? 0) + 1)
  }

  function noteClaim(claimed: Share): void {
    const share = inQueue(claimed)
    const { agent } = share
    const left = Math.max(0, (queued.get(agent) ?? 0) - 1)
    queued.set(agent, left)
    claims.set(agent, (claims.get(agent) ?? 0) + 1)
    const name = shareName(share)
    const own = (direct.get(name) ?? 0) - 1
    if (own > 0) direct.set(name, own)
    else direct.delete(name)
    // Not for every claim, because a pick costs the same for one turn as for many. Where slots are kept free, only the end of a turn makes room.
    if (lines.has(agent) && left <= queueAhead / 2 && !keepsSpare(agent)) onRoom(agent)
  }

  function noteEnd(): void {
    for (const agent of lines.keys()) onRoom(agent)
  }

  function notePick(agent: string, { isWaiting, isShared, spare, waiting }: Omit<Picking, 'picked'>): void {
    if (isShared) sharedAt.set(agent, performance.now())
    if (isWaiting) lines.set(agent, { spare, shares: new Set(waiting.map(share => shareName({ agent, ...share }))) })
    else lines.delete(agent)
  }

  function spareSlots(): ReadonlyMap<string, number> {
    return new Map(Array.from(lines, ([agent, { spare }]) => [agent, spare]))
  }

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sample().catch(() => {})
      await sleep(sampleMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  async function sample(): Promise<void> {
    const read = [queuedByAgent(db), waitingAgents(db), limitedAgents(db), namedQueues(db)] as const
    const [counts, agents, pairs, named] = await Promise.all(read)
    queued.clear()
    for (const { agent, count } of counts) queued.set(agent, count)
    if (queued.size === 0) direct.clear()
    for (const agent of lines.keys()) if (!agents.includes(agent)) lines.delete(agent)
    for (const agent of agents) if (!lines.has(agent)) lines.set(agent, { spare: 0, shares: new Set() })
    for (const [agent, at] of sharedAt) if (performance.now() - at >= sharedMs) sharedAt.delete(agent)
    lastClaims = claims
    claims = new Map()
    queues = new Map(named.map(({ queue, agent, tenant }) => [tenant === null ? agent : limitName(tenant, agent), queue]))
    limited = new Set(pairs.map(({ tenant, agent }) => limitName(tenant, agent)))
    // Room may have come by what no process notices: a worker that died, a minute that passed, an agent that goes on.
    noteEnd()
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
