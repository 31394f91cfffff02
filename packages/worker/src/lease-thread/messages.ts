/** The messages between the main thread of a worker and its lease thread. Types only, because the lease thread is plain JavaScript. */
import type { Hello, Holding } from '@rivulet/contract/internal'

/** Where the code of a held turn runs: in this process, nowhere yet (it waits for a process of its own), or in that process. */
export type Place = 'here' | 'waiting' | 'apart'

/** `open`: how many open waits the turn holds here. */
export type Held = { holding: Holding; place: Place; open?: number }

/** `hold` and `drop` name a lease by a number of this process, because one turn can be held by two claims for a moment. */
export type ToThread = { hold: number; held: Held } | { drop: number } | { fenced: number } | { beat: 'now' }

export type FromThread =
  /** The server says that these are no longer ours, as of the epoch that it was asked about. */
  | { lost: { key: number; epoch: number }[] }
  /** A wait of these was closed. */
  | { answered: number[] }
  /** The queues of the agents now, as in the reply to a hello. */
  | { queues: Record<string, string> }
  /** A beat was not accepted; another follows. */
  | { failed: string }
  /** The key may not serve these agents: no later beat will be accepted. */
  | { refused: string }

export type ThreadOptions = {
  url: string
  key: string | undefined
  worker: string
  /** Sent with every heartbeat. Null in the process of one turn, which takes no other turns. */
  hello: Hello | null
  heartbeatMs: number
  /** How long the main thread's event loop may be blocked; null: no limit. */
  watchdogMs: number | null
  /** Two numbers that the main thread writes: a counter that shows that its event loop runs, and 1 while a debugger is attached. */
  shared: SharedArrayBuffer
}
