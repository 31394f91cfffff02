/**
 * The audit entries of refused requests: without a valid key, without the right, above a rate or a quota. A flood is one entry a minute for each caller and
 * code, with their number; the addresses of one IPv6 network (/64) are one caller, because one machine has all of them. Beyond `maxGroups` of these, those
 * of a tenant share one for each code and `via`. Changes that a caller repeats are counted the same way, after the first of a minute. A process that is killed
 * loses the numbers that it has not written.
 */
import { isIPv6 } from 'node:net'
import type { ErrorCode } from '@rivulet/protocol'
import { createTally } from '../access/tally.ts'
import { type AuditCaller, type AuditedChange, insertAudit } from '../store/access/audit.ts'
import type { Database } from '../store/connection/database.ts'
import type { Tenant } from '../store/connection/tenant.ts'

const roundMs = 1_000
const entryMs = 60_000
/** While Postgres is unavailable. */
const retryMs = 10_000
const maxGroups = 50
const maxRoutes = 10
/** Changes beyond these have an entry each: each is about a task of its own. */
const maxRepeated = 1_000
const repeatable: readonly AuditedChange['action'][] = ['task.exported', 'signal.sent', 'state.set', 'store.set']

/** `tenant` is `everyTenant` for a caller that is unknown: the entry is the installation's. */
export type Refusal = { tenant: Tenant; caller: AuditCaller; code: ErrorCode; route: string }
/** `size` names what it counts towards. */
type Group = {
  size: string
  tenant: Tenant
  caller: AuditCaller
  change: AuditedChange
  count: number
  routes: Set<string>
  nextAt: number
}
type Deps = { db: Database; onEntry: (action: AuditedChange['action']) => void; onError: (error: unknown) => void }

export class Refusals {
  readonly #groups = new Map<string, Group>()
  readonly #sizes = createTally()
  readonly #deps: Deps
  readonly #clock: NodeJS.Timeout
  #writing: Promise<void> = Promise.resolve()
  #retryAt = Number.NEGATIVE_INFINITY

  constructor(deps: Deps) {
    this.#deps = deps
    this.#clock = setInterval(() => this.write(), roundMs)
    this.#clock.unref()
  }

  add({ tenant, caller, code, route }: Refusal): void {
    const own = JSON.stringify([tenant, code, { ...caller, address: networkOf(caller.address) }])
    const isShared = !this.#groups.has(own) && this.#sizes.countOf(tenant) >= maxGroups
    const group = this.#groupOf(isShared ? JSON.stringify([tenant, code, caller.via]) : own, tenant, {
      ...{ tenant, caller: isShared ? { via: caller.via } : caller },
      change: { action: 'request.refused', target: code },
    })
    if (!isShared && group.caller.address !== caller.address) group.caller = { ...caller, address: networkOf(caller.address) }
    group.count += 1
    if (group.routes.size < maxRoutes) group.routes.add(route)
  }

  /**
   * Whether this caller has made the same change of the same target within a minute. Then it is counted, and needs no entry of its own: one with the details
   * of the last of them follows.
   */
  isRepeated(tenant: Tenant, caller: AuditCaller, change: AuditedChange): boolean {
    if (!repeatable.includes(change.action)) return false
    const { via, key, subject } = caller
    const name = JSON.stringify([tenant, change.action, change.target, via, key, subject])
    const known = this.#groups.get(name)
    if (known) {
      Object.assign(known, { caller, change, count: known.count + 1 })
      return true
    }
    const changes = `${tenant} changes`
    if (this.#sizes.countOf(changes) < maxRepeated)
      this.#groupOf(name, changes, { tenant, caller, change }).nextAt = performance.now() + entryMs
    return false
  }

  /** Writes what is due, in one transaction. @param all also what has an entry of this minute */
  write({ all = false } = {}): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeDue(all))
    return this.#writing
  }

  async close(): Promise<void> {
    clearInterval(this.#clock)
    await this.write({ all: true })
  }

  #groupOf(name: string, size: string, of: Pick<Group, 'tenant' | 'caller' | 'change'>): Group {
    const known = this.#groups.get(name)
    if (known) return known
    const group = { ...of, size, count: 0, routes: new Set<string>(), nextAt: Number.NEGATIVE_INFINITY }
    this.#groups.set(name, group)
    this.#sizes.add(size)
    return group
  }

  async #writeDue(all: boolean): Promise<void> {
    const now = performance.now()
    if (!all && now < this.#retryAt) return
    for (const [name, { size, count, nextAt }] of this.#groups) {
      if (count > 0 || now < nextAt) continue
      this.#groups.delete(name)
      this.#sizes.remove(size)
    }
    const due = Array.from(this.#groups.values()).filter(({ count, nextAt }) => count > 0 && (all || now >= nextAt))
    if (due.length === 0) return
    const taken = due.map(group => ({ group, count: group.count, routes: [...group.routes] }))
    for (const { group } of taken) Object.assign(group, { count: 0, routes: new Set<string>() })
    try {
      await this.#deps.db.transaction(async tx => {
        for (const { group, count, routes } of taken)
          await insertAudit(tx, group.tenant, group.caller, {
            ...group.change,
            details: { ...group.change.details, count, ...(routes.length > 0 && { routes }) },
          })
      })
    } catch (error) {
      this.#retryAt = now + retryMs
      for (const { group, count, routes } of taken)
        Object.assign(group, { count: group.count + count, routes: new Set([...routes, ...group.routes].slice(0, maxRoutes)) })
      return this.#deps.onError(error)
    }
    for (const { group } of taken) {
      group.nextAt = now + entryMs
      this.#deps.onEntry(group.change.action)
    }
  }
}

/** The /64 network of an IPv6 address. IPv4 in IPv6, and this machine, begin with `::` and are one address. */
export function networkOf(address: string | undefined): string | undefined {
  if (!address || !isIPv6(address) || address.startsWith('::')) return address
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::')
  const groups = head.split(':')
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(':').length
  const first = [...groups, ...Array<string>(Math.max(0, missing)).fill('0'), ...(tail?.split(':') ?? [])].slice(0, 4)
  return `${first.map(group => Number.parseInt(group || '0', 16).toString(16)).join(':')}::/64`
}
