/**
 * The main thread's handle of the lease thread (`lease-thread/`), which sends heartbeats however busy the main thread is, and ends the process when
 * the main thread's event loop is blocked for `watchdogMs`.
 *
 * The lease thread knows each held turn with its current epoch. What happens to a lost turn is decided here, by `onLost`.
 */
import { url as debuggerUrl } from 'node:inspector'
import { isMainThread, Worker as Thread } from 'node:worker_threads'
import type { Hello, Holding } from '@rivulet/contract/internal'
import { RivuletError } from '@rivulet/protocol'
import type { FromThread, Held, Place, ThreadOptions, ToThread } from './lease-thread/messages.ts'
import { threadUrl } from './lease-thread/thread-url.ts'
import { tickOf } from './lease-thread/watchdog.mjs'

/** The lease of one held turn. */
export type Lease = {
  /** The log was reopened under this epoch. */
  moveTo(epoch: number): void
  /** The turn's own process has been started. */
  leave(): void
  /** How many open waits the turn holds here: the heartbeat asks whether one was closed. */
  noteOpen(open: number): void
  drop(): void
}

export type LeaseThread = {
  hold(holding: Holding, place: Place, onLost: (epoch: number) => void, onAnswered?: () => void): Lease
  noteFenced(): void
  /** Sends a heartbeat now. */
  renew(): void
  /** Rejects when the thread has ended by itself, or the server refuses this worker's key: leases are no longer renewed. */
  failed: Promise<never>
  stop(): Promise<void>
}

type LeaseThreadOptions = {
  url: string
  key: string | undefined
  worker: string
  hello: Hello | null
  heartbeatMs: number
  watchdogMs: number | null
  onBeatFailed: (reason: string) => void
  /** After each hello: by agent, the queues that are not named as their agents. */
  onQueues: (queues: Record<string, string>) => void
}

export function startLeaseThread({ onBeatFailed, onQueues, ...options }: LeaseThreadOptions): LeaseThread {
  const shared = new SharedArrayBuffer(8)
  const seen = new Int32Array(shared)
  // The watchdog can inspect only the main thread.
  const watchdogMs = isMainThread ? options.watchdogMs : null
  const workerData: ThreadOptions = { ...options, watchdogMs, shared }
  // Without the flags of the process: `--import tsx`, or an SDK for traces, would cost the thread a second and 30 MB.
  const thread = new Thread(threadUrl, { workerData, execArgv: [] })
  const onLost = new Map<number, (epoch: number) => void>()
  const onAnswered = new Map<number, () => void>()
  let lastKey = 0
  let isStopping = false
  const pulse = setInterval(showPulse, tickOf(watchdogMs ?? 10_000))
  const failed = new Promise<never>((_, reject) => {
    thread.on('message', (message: FromThread) => 'refused' in message && reject(new RivuletError('forbidden', message.refused)))
    thread.on('error', reject)
    thread.on('exit', code => isStopping || reject(new Error(`The thread that renews leases exited (${code})`)))
  })
  failed.catch(() => {})
  thread.on('message', hear)
  thread.unref()
  pulse.unref()

  return { hold, noteFenced: () => tell({ fenced: 1 }), renew: () => tell({ beat: 'now' }), failed, stop }

  function hold(first: Holding, firstPlace: Place, lost: (epoch: number) => void, answered = () => {}): Lease {
    lastKey += 1
    const key = lastKey
    let held: Held = { holding: first, place: firstPlace }
    onLost.set(key, lost)
    onAnswered.set(key, answered)
    tell({ hold: key, held })
    return {
      moveTo: epoch => change({ ...held, holding: { ...held.holding, epoch } }),
      leave: () => change({ ...held, place: 'apart' }),
      noteOpen: open => change({ ...held, open }),
      drop: () => {
        onAnswered.delete(key)
        if (onLost.delete(key)) tell({ drop: key })
      },
    }

    function change(next: Held): void {
      held = next
      if (onLost.has(key)) tell({ hold: key, held })
    }
  }

  function hear(message: FromThread): void {
    if ('failed' in message) onBeatFailed(message.failed)
    else if ('queues' in message) onQueues(message.queues)
    else if ('answered' in message) for (const key of message.answered) onAnswered.get(key)?.()
    else if ('lost' in message) for (const { key, epoch } of message.lost) onLost.get(key)?.(epoch)
  }

  function tell(message: ToThread): void {
    thread.postMessage(message)
  }

  function showPulse(): void {
    Atomics.add(seen, 0, 1)
    // A main thread that stands at a breakpoint is not blocked.
    Atomics.store(seen, 1, debuggerUrl() === undefined ? 0 : 1)
  }

  async function stop(): Promise<void> {
    isStopping = true
    clearInterval(pulse)
    await thread.terminate()
  }
}
