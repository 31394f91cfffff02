/**
 * Hears the channels of workers without Redis for them. A hint that comes between two calls of a worker waits for the next one. Hints may be lost: the
 * heartbeat of the worker tells it the same.
 */
import { type Channels, createHintSubscriber, type Keys } from '@rivulet/broker'
import type { Hints } from '@rivulet/contract/internal'
import type { TurnId } from '@rivulet/protocol'

/** How long the channel of a worker that does not call is heard. */
const keepMs = 10_000
/** Hints that wait for one worker, of each kind. */
const maxWaiting = 1_000

type Watched = { worker: string; over: Set<TurnId>; answered: Set<TurnId>; wake: () => void; leaving?: NodeJS.Timeout }

export type WorkerHints = ReturnType<typeof createWorkerHints>

export function createWorkerHints({ channels, keys }: { channels: Channels; keys: Keys }) {
  const watches = new Map<string, Watched>()
  const closing = new AbortController()
  const subscriber = createHintSubscriber({
    ...{ channels, keys },
    onOver: (worker, turnId) => note(worker, 'over', turnId),
    onAnswered: (worker, turnId) => note(worker, 'answered', turnId),
  })
  return { next, close: () => closing.abort() }

  /** Resolves when there is a hint, or the signal fires. A caller with another key takes no hint away. */
  async function next(key: string | null, worker: string, signal: AbortSignal): Promise<Hints> {
    const name = `${key} ${worker}`
    const watched = watch(name, worker)
    clearTimeout(watched.leaving)
    const over = AbortSignal.any([signal, closing.signal])
    if (watched.over.size + watched.answered.size === 0 && !over.aborted)
      await new Promise<void>(resolve => {
        watched.wake = resolve
        over.addEventListener('abort', () => resolve(), { once: true })
      })
    const hints = { over: [...watched.over], answered: [...watched.answered] }
    watched.over.clear()
    watched.answered.clear()
    watched.leaving = setTimeout(() => forget(name, worker), keepMs).unref()
    return hints
  }

  function watch(name: string, worker: string): Watched {
    const known = watches.get(name)
    if (known) return known
    const watched: Watched = { worker, over: new Set(), answered: new Set(), wake: () => {} }
    watches.set(name, watched)
    subscriber.follow(worker)
    return watched
  }

  function note(worker: string, kind: 'over' | 'answered', turnId: TurnId): void {
    for (const watched of watches.values()) {
      if (watched.worker !== worker || watched[kind].size >= maxWaiting) continue
      watched[kind].add(turnId)
      watched.wake()
    }
  }

  function forget(name: string, worker: string): void {
    watches.delete(name)
    if (![...watches.values()].some(other => other.worker === worker)) subscriber.unfollow(worker)
  }
}
