/**
 * Turns that wait: their waits open, their worker parks them, an answer lets them go on. Everything is committed first, then announced, then the worker
 * that holds the turn gets a hint. What a crash leaves unannounced is owed, and the reconciler announces it.
 */
import type { LogAnnouncer, LogReader } from '@rivulet/broker'
import type { AskBody, AskResult, ParkBody, ParkResult } from '@rivulet/contract/internal'
import { digestOf, messagesOf, nextIndexOf, type TurnId, type Wait } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyBaseLogger } from 'fastify'
import type { Database } from '../store/connection/database.ts'
import type { TurnRow } from '../store/rows.ts'
import { askWaits, readWaits } from '../store/waits/ask-waits.ts'
import { expireWaits } from '../store/waits/close-waits.ts'
import { parkTurn } from '../store/waits/park-turn.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { aboutTurn } from './about-turn.ts'
import { foldWhole, joinsIn, newMessages } from './ending/turn-fold.ts'
import type { Relay } from './relay.ts'
import type { TurnAnnouncing } from './turn-announcing.ts'
import type { TurnUsage } from './turn-usage.ts'

type TurnWaitingDeps = {
  db: Database
  reader: LogReader
  announcer: LogAnnouncer
  announcing: TurnAnnouncing
  relay: Relay
  usage: TurnUsage
  logger: FastifyBaseLogger
  metrics: Metrics
}

export type TurnWaiting = ReturnType<typeof createTurnWaiting>

export function createTurnWaiting({ db, reader, announcer, announcing, relay, usage, logger, metrics }: TurnWaitingDeps) {
  return { ask, read, park, changed, expire }

  /** Opens waits. They are announced before the worker gets its answer. */
  async function ask(body: AskBody): Promise<AskResult> {
    const asked = await askWaits(db, body)
    if (asked.result !== 'asked') return asked
    if (failpoint) await failpoint('asked')
    const isTold = await announcing.announceWaits(asked.turn)
    return { result: 'asked', waits: asked.waits, isTold }
  }

  /** For the worker that holds the turn; null for any other. */
  async function read(turnId: TurnId, claimId: string): Promise<Wait[] | null> {
    const found = await readWaits(db, turnId, claimId)
    if (found?.isChanged) await announcing.announceWaits(found.turn)
    return found && (found.turn.waits ?? [])
  }

  /** As `finish`, but without an end: the log is folded and stored. `gap` when the log does not have all that the worker appended. */
  async function park(turn: TurnRow, { epoch, claimId, n, digest }: Omit<ParkBody, 'digest'> & { digest?: string }): Promise<ParkResult> {
    if (turn.claim !== claimId) return 'superseded'
    // Its worker has parked it before, and did not receive the answer.
    if (turn.status === 'waiting' || turn.resumed === 'queued') return 'parked'
    const folded = await foldWhole(reader, turn, { epoch, appended: n })
    // A park keeps no more than a fold takes, so output that is misplaced would be lost.
    if (!folded || folded.misplaced !== null) return 'gap'
    const { state } = folded
    const messages = newMessages(state, turn)
    // The worker closes its messages before it parks. One that is open has lost its end.
    if (messagesOf(state).some(({ status }) => status === 'streaming')) return 'gap'
    if (digest !== undefined && digestOf(messages) !== digest) {
      metrics.digestMismatches.inc()
      logger.warn(aboutTurn(turn), 'worker and server folded the turn differently; the log is stored')
    }
    await usage.fold(turn.id, messages)
    const keptTo = messages.length > 0 ? nextIndexOf(state) : (turn.keptTo ?? turn.firstIndex ?? 0)
    const parked = await parkTurn(db, turn, { epoch, claimId, messages, joins: joinsIn(state, turn), state: state.agentState, keptTo })
    if (parked.result === 'answered' && parked.turn) await announcing.announceWaits(parked.turn)
    if (parked.result !== 'parked') return parked.result === 'already' ? 'parked' : parked.result
    if (failpoint) await failpoint('parked')
    logger.info({ ...aboutTurn(turn), epoch }, 'turn parked')
    metrics.parks.inc()
    await announcing.announceWaits(parked.turn, parked.epoch)
    return 'parked'
  }

  /** After the commit that closed a wait: the turn runs again where it parked, or goes on in the worker that holds it. */
  async function changed(turn: TurnRow): Promise<void> {
    if (failpoint) await failpoint('answered')
    relay.kick()
    await announcing.announceWaits(turn)
    if (turn.worker) await announcer.tellAnswered(turn.worker, turn.id).catch(() => {})
  }

  async function expire(due: Pick<TurnRow, 'id' | 'task'>): Promise<boolean> {
    const turn = await expireWaits(db, due)
    if (turn) await changed(turn)
    return turn !== null
  }
}
