/** The parts of an API process, wired once. Routes are handed these and nothing else. */
import type { LogAnnouncer, LogReader } from '@rivulet/broker'
import type { Limits } from '@rivulet/protocol'
import type { Config } from './config.ts'
import type { Hub } from './hub.ts'
import type { Metrics } from './metrics.ts'
import type { Relay } from './relay.ts'
import type { Database } from './store/database.ts'
import type { TurnAnnouncing } from './turn-announcing.ts'
import type { TurnEnding } from './turn-ending.ts'

export type Services = {
  config: Config
  limits: Limits
  db: Database
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
