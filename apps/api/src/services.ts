/** The parts of an API process, wired once. Routes are handed these and nothing else. */
import type { LogAnnouncer, LogReader } from '@rivulet/broker'
import type { Limits } from '@rivulet/protocol'
import type { Door } from './access/guard.ts'
import type { OpenStreams } from './access/open-streams.ts'
import type { Config } from './config.ts'
import type { Hub } from './hub.ts'
import type { Metrics } from './metrics.ts'
import type { Relay } from './relay.ts'
import type { Database, DatabaseHandle } from './store/database.ts'
import type { TurnAnnouncing } from './turn-announcing.ts'
import type { TurnEnding } from './turn-ending.ts'

export type Services = {
  config: Config
  limits: Limits
  /** Who may come in. */
  door: Door
  streams: OpenStreams
  /** For what the server does of its own accord. */
  db: Database
  /** For everything that somebody asks for. */
  of: DatabaseHandle['of']
  reader: LogReader
  announcer: LogAnnouncer
  relay: Relay
  announcing: TurnAnnouncing
  ending: TurnEnding
  hub: Hub
  metrics: Metrics
  /** Whether the schema is there: before, nothing but liveness can be answered. */
  hasStarted(): boolean
  /** Whether this process takes no new streams. */
  isDraining(): boolean
  /** What keeps this process from serving, or null. */
  unready(): Promise<string | null>
}
