/** Runs schedules at their times. Every API process looks; Postgres gives each schedule to one of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyBaseLogger } from 'fastify'
import type { Database } from '../store/connection/database.ts'
import { type CreatedRun, runDueSchedule, type ScheduleDeps } from '../store/schedules/run-schedule.ts'
import type { TurnEnding } from './ending/turn-ending.ts'
import type { Relay } from './relay.ts'

type SchedulesDeps = Omit<ScheduleDeps, 'interrupt'> & {
  db: Database
  ending: TurnEnding
  relay: Relay
  logger: FastifyBaseLogger
}

export type Schedules = { stop(): Promise<void> }

const pollMs = 1_000

/** No caller makes a schedule run at its time, so the audit log has no entry. */
const unaudited = async () => {}

export function startSchedules({ db, ending, relay, logger, maxQueuedTurns, admit }: SchedulesDeps): Schedules {
  const stopping = new AbortController()
  const running = loop()
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        const deps: ScheduleDeps = {
          maxQueuedTurns,
          admit,
          interrupt: (tx, tenant, task) => ending.beginInterrupt(tx, { tenant }, task, unaudited),
        }
        for (let run = await runDueSchedule(db, deps); run && !stopping.signal.aborted; run = await runDueSchedule(db, deps))
          if (run !== 'ran before') await complete(run)
      } catch (error) {
        logger.warn({ err: error }, 'could not run a schedule; retrying')
      }
      await sleep(pollMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  async function complete({ run, interrupted }: CreatedRun): Promise<void> {
    if (failpoint) await failpoint('schedule ran')
    const { schedule, at, task, skipReason } = run
    logger.info({ schedule, at, task, skipReason }, 'ran a schedule')
    if (interrupted) await ending.completeInterrupt(interrupted)
    relay.kick()
  }
}
