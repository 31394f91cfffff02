/**
 * Slots that tenants share, such as the connections of a pool. A tenant takes a slot only while it has fewer than are free: alone it has half of them, and
 * whatever a few tenants want, some slots stay free for the next. Callers wait in order; among tenants, the one with the fewest slots is next.
 */
import type { Tenant } from './tenant.ts'

type FairSlotsOptions = {
  max: number
  /** How long a caller waits for a slot; default: not at all. */
  waitMs?: number
  /** How many callers of a tenant may wait. */
  maxWaiting?: number
}

export class FairSlots {
  readonly #options: FairSlotsOptions
  readonly #taken = new Map<Tenant, number>()
  readonly #waiting = new Map<Tenant, Set<() => void>>()
  #free: number

  constructor(options: FairSlotsOptions) {
    this.#options = options
    this.#free = options.max
  }

  get waitingCount(): number {
    return Array.from(this.#waiting.values()).reduce((sum, { size }) => sum + size, 0)
  }

  get takenCount(): number {
    return this.#options.max - this.#free
  }

  /** False if the tenant has got no slot in time, or if the signal has fired before. */
  async acquire(tenant: Tenant, signal?: AbortSignal): Promise<boolean> {
    if (signal?.aborted) return false
    const queue = this.#waiting.get(tenant)
    if (!queue && this.acquireNow(tenant)) return true
    if (queue && queue.size >= (this.#options.maxWaiting ?? Number.POSITIVE_INFINITY)) return false
    return this.#wait(tenant, signal)
  }

  acquireNow(tenant: Tenant): boolean {
    if (this.roomFor(tenant) === 0) return false
    this.#free -= 1
    this.#taken.set(tenant, this.#countOf(tenant) + 1)
    return true
  }

  /** How many slots the tenant gets if no other takes or releases one meanwhile. */
  roomFor(tenant: Tenant): number {
    return Math.max(0, Math.ceil((this.#free - this.#countOf(tenant)) / 2))
  }

  release(tenant: Tenant): void {
    this.#free += 1
    const left = this.#countOf(tenant) - 1
    if (left > 0) this.#taken.set(tenant, left)
    else this.#taken.delete(tenant)
    this.#serve()
  }

  #wait(tenant: Tenant, signal: AbortSignal | undefined): Promise<boolean> {
    const queue = this.#waiting.get(tenant) ?? new Set()
    this.#waiting.set(tenant, queue)
    return new Promise(resolve => {
      const settle = (hasSlot: boolean) => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', giveUp)
        queue.delete(serve)
        if (queue.size === 0) this.#waiting.delete(tenant)
        resolve(hasSlot)
      }
      const serve = () => settle(true)
      const giveUp = () => settle(false)
      const timer = setTimeout(giveUp, this.#options.waitMs ?? 0)
      signal?.addEventListener('abort', giveUp)
      queue.add(serve)
    })
  }

  /** If the waiting tenant with the fewest slots gets no further one, then no waiting tenant does. */
  #serve(): void {
    for (;;) {
      const [tenant] = Array.from(this.#waiting.keys()).sort((a, b) => this.#countOf(a) - this.#countOf(b))
      if (tenant === undefined || !this.acquireNow(tenant)) return
      const [serve] = this.#waiting.get(tenant) ?? []
      serve?.()
    }
  }

  #countOf(tenant: Tenant): number {
    return this.#taken.get(tenant) ?? 0
  }
}
