/**
 * Uploads and downloads that are under way: how many there may be in this process, which tenants share, and their end when the process stops. A transfer
 * waits a while for its tenant's share, so that callers do not have to repeat it.
 */
import { RivuletError } from '@rivulet/protocol'
import { FairSlots } from '../store/connection/fair-slots.ts'
import type { Tenant } from '../store/connection/tenant.ts'

type Transfer = {
  /** Fires when the process has waited long enough for this transfer. */
  signal: AbortSignal
  over(): void
}

/** Shorter than a request may take to send its body. */
const waitMs = 5_000

export class Transfers {
  readonly #stopping = new AbortController()
  readonly #callers = new Map<string, number>()
  readonly #slots: FairSlots
  readonly #max: number
  readonly #onCount: (count: number) => void

  /** @param max at once */
  constructor(max: number, onCount: (count: number) => void) {
    this.#max = max
    this.#onCount = onCount
    this.#slots = new FairSlots({ max, waitMs })
  }

  /** A caller may have a quarter of all transfers, with those that wait. */
  async begin(tenant: Tenant, caller: string): Promise<Transfer> {
    const mostOfCaller = Math.max(1, Math.floor(this.#max / 4))
    if (this.#countOf(caller) >= mostOfCaller) throw tooMany(`A caller may have at most ${mostOfCaller}`)
    this.#callers.set(caller, this.#countOf(caller) + 1)
    if (!(await this.#slots.acquire(tenant, this.#stopping.signal))) {
      this.#forget(caller)
      throw tooMany(`This tenant has its share of the ${this.#max}`)
    }
    this.#onCount(this.#slots.takenCount)
    let isOver = false
    const over = () => {
      if (isOver) return
      isOver = true
      this.#forget(caller)
      this.#slots.release(tenant)
      this.#onCount(this.#slots.takenCount)
    }
    return { signal: this.#stopping.signal, over }
  }

  #countOf(caller: string): number {
    return this.#callers.get(caller) ?? 0
  }

  #forget(caller: string): void {
    const left = this.#countOf(caller) - 1
    if (left > 0) this.#callers.set(caller, left)
    else this.#callers.delete(caller)
  }

  /** Those that are under way get this long. */
  close(graceMs: number): void {
    setTimeout(() => this.#stopping.abort(), graceMs).unref()
  }
}

function tooMany(whose: string): RivuletError {
  return new RivuletError('overloaded', `${whose} uploads and downloads at once (MAX_FILE_TRANSFERS)`)
}
