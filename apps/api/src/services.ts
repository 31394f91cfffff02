/** The parts of an API process, wired once. Routes are handed these and nothing else. */
import type { LogAnnouncer, LogReader } from '@rivulet/broker'
import type { Tracer } from '@rivulet/runtime/trace'
import type { Door } from './access/guard.ts'
import type { OpenStreams } from './access/open-streams.ts'
import type { Capacity } from './capacity.ts'
import type { Config } from './config.ts'
import type { Hub } from './hub.ts'
import type { Metrics } from './metrics.ts'
import type { Relay } from './relay.ts'
import type { TaskAcceptance } from './store/accept-tasks.ts'
import type { Database, DatabaseHandle } from './store/database.ts'
import type { TurnAnnouncing } from './turn-announcing.ts'
import type { TurnDeaths } from './turn-deaths.ts'
import type { TurnEnding } from './turn-ending.ts'

export type Services = {
  config: Config
  /** Who may come in. */
  door: Door
  streams: OpenStreams
  /** Whether there is room for new work. */
  capacity: Capacity
  /** For what the server does of its own accord. */
  db: Database
  /** For heartbeats only. */
  leases: Database
  /** For everything that somebody asks for. */
  of: DatabaseHandle['of']
  acceptance: TaskAcceptance
  reader: LogReader
  announcer: LogAnnouncer
  relay: Relay
  announcing: TurnAnnouncing
  ending: TurnEnding
  deaths: TurnDeaths
  hub: Hub
  metrics: Metrics
  /** Brings those metrics up to date that are not counted as they happen. */
  sampleMetrics(): Promise<void>
  tracer: Tracer
  /** Whether the schema is there: before, nothing but liveness can be answered. */
  hasStarted(): boolean
  /** Whether this process takes no new streams. */
  isDraining(): boolean
  /** What keeps this process from serving, or null. */
  unready(): Promise<string | null>
}
