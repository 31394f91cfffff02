/**
 * What a turn waits for. A wait is stored by its name, so that a handler that runs again gets the same answer.
 *
 * While a wait is open, the worker holds the turn for a while, because most people respond within seconds. Then it parks: the turn leaves this process, and
 * the promises of its waits never settle here. It does not park while other work of the turn goes on, or while a message is open.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { AskResult, ParkResult, WantedWait } from '@rivulet/contract/internal'
import { maxWaits, maxWaitsBytes, RivuletError, type Wait } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'

/** How often a held turn looks whether it should park. */
const lookMs = 500

type WaitsDeps = {
  ask: (waits: WantedWait[]) => Promise<AskResult>
  /** The waits as they are now; null when the turn is no longer ours. */
  read: () => Promise<Wait[] | null>
  park: () => Promise<ParkResult>
  /** The log has lost the waits. */
  reopen: () => Promise<void>
  lose: () => void
  leave: () => void
  /** How many open waits the heartbeat asks about. */
  noteOpen: (open: number) => void
  /** Whether nothing else of the turn goes on. */
  isIdle: () => boolean
  hasFreeSlot: () => boolean
  signal: AbortSignal
}

export type Waits = {
  /** Opens waits together; resolves when all of them are closed. */
  open(wanted: readonly WantedWait[], holdMs: number): Promise<Wait[]>
  /** The same for waits that another call of the server opens. It may open none of them. */
  openBy(wanted: readonly { name: string }[], holdMs: number, ask: () => Promise<AskResult>): Promise<Wait[]>
  /** The server says that a wait was closed. */
  wake(): void
  /** Whether the handler has got past this wait. */
  hasReturned(name: string): boolean
  /** Names of waits whose promise no code waits for any more. */
  pending(): string[]
}

type Open = { resolve: (wait: Wait) => void; reject: (error: unknown) => void; holdUntil: number; dueAt: number }

export function createWaits(deps: WaitsDeps): Waits {
  const { signal } = deps
  const asked = new Set<string>()
  const open = new Map<string, Open>()
  const returned = new Set<string>()
  let wakeUp = new AbortController()
  let isTold = false
  let keeping: Promise<void> | null = null
  return {
    open: (wanted, holdMs) => openBy(wanted, holdMs, () => deps.ask([...wanted])),
    openBy,
    wake,
    hasReturned: name => returned.has(name),
    pending: () => [...asked].filter(name => !returned.has(name)),
  }

  async function openBy(wanted: readonly { name: string }[], holdMs: number, ask: () => Promise<AskResult>): Promise<Wait[]> {
    const twice = wanted.find(({ name }, i) => asked.has(name) || wanted.findIndex(other => other.name === name) !== i)
    if (twice) throw new RivuletError('bad_call', `Two waits are named "${twice.name}", but a wait is stored by its name`)
    if (asked.size + wanted.length > maxWaits) throw tooMany('too_many')
    for (const { name } of wanted) asked.add(name)
    try {
      return await openAsked(ask, holdMs)
    } finally {
      for (const { name } of wanted) returned.add(name)
    }
  }

  async function openAsked(ask: () => Promise<AskResult>, holdMs: number): Promise<Wait[]> {
    const answer = await ask()
    if (answer.result === 'superseded') {
      deps.lose()
      return never()
    }
    if (answer.result !== 'asked') throw tooMany(answer.result)
    const holdUntil = performance.now() + holdMs
    const closed = Promise.all(answer.waits.map(wait => (wait.status === 'open' ? untilClosed(wait, holdUntil) : wait)))
    if (!answer.isTold && open.size > 0) await deps.reopen()
    keep()
    return closed
  }

  function untilClosed(wait: Wait, holdUntil: number): Promise<Wait> {
    // By the server's clock, from when it was asked: a wait of an earlier claim is due sooner, which costs a look.
    const dueAt = performance.now() + Date.parse(wait.expiresAt) - Math.max(Date.parse(wait.createdAt), Date.now())
    return new Promise((resolve, reject) => {
      open.set(wait.name, { resolve, reject, holdUntil, dueAt })
      deps.noteOpen(open.size)
    })
  }

  function keep(): void {
    if (open.size > 0) keeping ??= hold().finally(() => (keeping = null))
  }

  async function hold(): Promise<void> {
    try {
      while (open.size > 0 && !signal.aborted) {
        if (failpoint) await failpoint('holding')
        await look()
      }
      if (signal.aborted) settleAll(entry => entry.reject(signal.reason))
    } catch (error) {
      settleAll(entry => entry.reject(error))
    }
  }

  async function look(): Promise<void> {
    const now = performance.now()
    const entries = [...open.values()]
    const dueAt = Math.min(...entries.map(entry => entry.dueAt))
    if (isTold || dueAt <= now) return refresh()
    const holdUntil = Math.max(...entries.map(entry => entry.holdUntil))
    if ((holdUntil <= now || !deps.hasFreeSlot()) && deps.isIdle()) return park()
    const restMs = holdUntil > now ? Math.min(holdUntil - now, lookMs) : lookMs
    await sleep(Math.max(1, Math.min(restMs, dueAt - now)), undefined, { signal: AbortSignal.any([signal, wakeUp.signal]) }).catch(() => {})
  }

  async function refresh(): Promise<void> {
    isTold = false
    wakeUp = new AbortController()
    const waits = await deps.read()
    if (!waits) return deps.lose()
    for (const wait of waits) {
      const entry = wait.status === 'open' ? undefined : open.get(wait.name)
      if (!entry) continue
      open.delete(wait.name)
      entry.resolve(wait)
    }
    deps.noteOpen(open.size)
    // One that is due by our clock, and not by the server's.
    for (const entry of open.values()) if (entry.dueAt <= performance.now()) entry.dueAt = performance.now() + lookMs
  }

  async function park(): Promise<void> {
    const answer = await deps.park()
    switch (answer) {
      case 'parked':
        // Their promises never settle: code behind them runs when the turn is resumed.
        open.clear()
        return deps.leave()
      case 'answered':
        return refresh()
      case 'superseded':
        return deps.lose()
      case 'gap':
        return deps.reopen()
      default:
        return answer satisfies never
    }
  }

  function wake(): void {
    isTold = true
    wakeUp.abort()
  }

  function settleAll(settle: (entry: Open) => void): void {
    for (const entry of open.values()) settle(entry)
    open.clear()
  }
}

function never<T>(): Promise<T> {
  return new Promise(() => {})
}

function tooMany(why: 'too_many' | 'too_large'): RivuletError {
  const limit = why === 'too_many' ? `at most ${maxWaits} waits` : `waits of at most ${maxWaitsBytes} bytes in all`
  return new RivuletError('too_many_waits', `A turn may ask for ${limit}`)
}
