/**
 * Deaths of a turn: its worker died, or the turn blocked its worker. The turn is retried. The third death ends it as failed, because a turn that
 * kills every worker would otherwise never stop.
 */
import type { LogReader } from '@rivulet/broker'
import { type Failure, messagesOf, sumUsage } from '@rivulet/protocol'
import type { SQL } from 'drizzle-orm'
import type { FastifyBaseLogger } from 'fastify'
import { foldFrom } from '../log/log-fold.ts'
import type { Database } from '../store/connection/database.ts'
import type { TurnRow } from '../store/rows.ts'
import { countDeath } from '../store/turns/leases.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { aboutTurn } from './about-turn.ts'
import type { TurnEnding } from './ending/turn-ending.ts'
import type { TurnUsage } from './turn-usage.ts'

const maxDeaths = 3
/** The first death proves little, because a killed worker takes all its turns with it. A turn that loses two workers is a suspect, and runs alone. */
const deathsBeforeIsolation = 2

export function needsOwnProcess({ deaths }: Pick<TurnRow, 'deaths'>): boolean {
  return deaths >= deathsBeforeIsolation
}

export type TurnDeaths = {
  /** Counts a death if `condition` still holds in the transaction; returns whether it did. */
  count(turn: TurnRow, worker: 'dead' | 'silent', condition: SQL | undefined): Promise<boolean>
}

type TurnDeathsDeps = {
  db: Database
  reader: LogReader
  ending: TurnEnding
  usage: TurnUsage
  metrics: Metrics
  logger: FastifyBaseLogger
}

export function createTurnDeaths({ db, reader, ending, usage, metrics, logger }: TurnDeathsDeps): TurnDeaths {
  return { count }

  async function count(turn: TurnRow, worker: 'dead' | 'silent', condition: SQL | undefined): Promise<boolean> {
    const deaths = turn.deaths + 1
    const isCounted = deaths < maxDeaths ? await retry(turn, worker, condition) : await ending.end(turn, failed(lost), condition)
    if (!isCounted) return false
    metrics.deaths.inc()
    logger.warn({ ...aboutTurn(turn), worker: turn.worker, deaths }, 'the worker of a turn died')
    return true
  }

  /** What the attempt has said leaves the log with the next one, so it is kept before. Without Redis, it is kept without its text. */
  async function retry(turn: TurnRow, worker: 'dead' | 'silent', condition: SQL | undefined): Promise<boolean> {
    const folded = turn.epoch === null ? null : await foldFrom(reader, turn.task, turn.epoch, turn.keptTo).catch(() => null)
    const said = folded ? messagesOf(folded.state).filter(message => message.turn === turn.number && message.author !== 'user') : []
    await usage.fold(turn.id, said)
    const used = sumUsage(said.map(message => message.usage))
    return countDeath(db, turn, worker, condition, { status: 'lost', error: died, usage: used, messages: said })
  }
}

const died = { code: 'worker_lost', message: 'The worker died while running this turn' }

const lost = { code: 'worker_lost', message: `The worker died ${maxDeaths} times while running this turn` }

function failed(error: Failure) {
  return { status: 'failed', stopReason: 'error', error } as const
}
