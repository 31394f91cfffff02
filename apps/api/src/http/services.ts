/** The parts of an API process that routes use. `api.ts` creates each once; routes also call the operations of `store` with the databases here. */
import type { LogAnnouncer, LogWriter, TurnLogReader } from '@rivulet/broker'
import type { Tracer } from '@rivulet/runtime/trace'
import type { Access } from '../access/guard.ts'
import type { OpenStreams } from '../access/open-streams.ts'
import type { Config } from '../config.ts'
import type { FeedFollowers } from '../feed/feed-stream.ts'
import type { Files } from '../files/files.ts'
import type { Spilling } from '../files/spill.ts'
import type { Transfers } from '../files/transfers.ts'
import type { Vault } from '../store/access/vault.ts'
import type { Database, DatabaseHandle } from '../store/connection/database.ts'
import type { TaskAcceptance } from '../store/tasks/accept/accept-tasks.ts'
import type { Hub } from '../stream/hub.ts'
import type { SseWriters } from '../stream/sse-writer.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Backlog } from '../turns/backlog.ts'
import type { Capacity } from '../turns/capacity.ts'
import type { ChildTasks } from '../turns/child-tasks.ts'
import type { TurnEnding } from '../turns/ending/turn-ending.ts'
import type { Relay } from '../turns/relay.ts'
import type { TurnAnnouncing } from '../turns/turn-announcing.ts'
import type { TurnDeaths } from '../turns/turn-deaths.ts'
import type { TurnPolls } from '../turns/turn-polls.ts'
import type { TurnUsage } from '../turns/turn-usage.ts'
import type { TurnWaiting } from '../turns/turn-waiting.ts'
import type { WorkerHints } from '../turns/worker-hints.ts'

import type { Refusals } from './refusals.ts'

export type Services = {
  config: Config
  /** Checks keys and tokens. */
  access: Access
  streams: OpenStreams
  /** Requests that were refused, for the audit log. */
  refusals: Refusals
  /** Whether there is room for new work. */
  capacity: Capacity
  /** For what the server does of its own accord. */
  db: Database
  /** For heartbeats only. */
  leases: Database
  /** For requests of callers. */
  databaseFor: DatabaseHandle['databaseFor']
  /** For lists, searches and sums. */
  listsFor: DatabaseHandle['listsFor']
  acceptance: TaskAcceptance
  reader: TurnLogReader
  announcer: LogAnnouncer
  /** For workers without Redis, like the next two. */
  writer: LogWriter
  polls: TurnPolls
  hints: WorkerHints
  files: Files
  spilling: Spilling
  transfers: Transfers
  relay: Relay
  backlog: Backlog
  announcing: TurnAnnouncing
  ending: TurnEnding
  deaths: TurnDeaths
  waiting: TurnWaiting
  usage: TurnUsage
  childTasks: ChildTasks
  vault: Vault
  hub: Hub
  /** The writers of all open event streams. */
  writers: SseWriters
  feedFollowers: FeedFollowers
  metrics: Metrics
  /** Brings those metrics up to date that are not counted as they happen. */
  sampleMetrics(): Promise<void>
  tracer: Tracer
  /** Whether the schema is there: before that, only `/healthz` returns 200. */
  hasStarted(): boolean
  /** Whether this process takes no new streams. */
  isDraining(): boolean
  /** What keeps this process from serving, or null. */
  unready(): Promise<string | null>
}
