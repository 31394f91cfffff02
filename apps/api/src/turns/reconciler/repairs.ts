/** Carries out repairs one by one, counts and logs them. A repair that fails keeps no other from being made, and is made in the next round. */
import type { FastifyBaseLogger } from 'fastify'
import { isDatabaseAway, sqlStateOf } from '../../store/connection/database.ts'
import type { TurnRow } from '../../store/rows.ts'
import type { Metrics, repairKinds } from '../../telemetry/metrics.ts'
import { type AboutTurn, aboutTurn } from '../about-turn.ts'
import type { Relay } from '../relay.ts'

type RepairKind = (typeof repairKinds)[number]
type Chore = RepairKind | 'retention' | 'wait'

export type Repairs = ReturnType<typeof createRepairs>

export function createRepairs({ relay, logger, metrics }: { relay: Relay; logger: FastifyBaseLogger; metrics: Metrics }) {
  return { mendEach, guard, repaired }

  async function mendEach<T extends TurnRow>(kind: RepairKind, turns: T[], mend: (turn: T) => Promise<boolean>): Promise<void> {
    for (const turn of turns) {
      const about = aboutTurn(turn)
      const work = async () => {
        if (await mend(turn)) repaired(kind, about)
      }
      await guard(kind, work, about)
    }
  }

  /** Without Postgres there is nothing to compare with: that ends the round. Anything else is tried again in the next one. */
  async function guard(kind: Chore, work: () => Promise<void>, about?: AboutTurn): Promise<void> {
    try {
      await work()
    } catch (error) {
      // 55P03 and 40: another transaction holds this task, or committed first.
      if (isDatabaseAway(error) && !/^(55P03|40)/.test(sqlStateOf(error) ?? '')) throw error
      logger.warn({ kind, ...about, err: error }, 'reconciler repair failed; retrying')
    }
  }

  function repaired(kind: RepairKind, about: Pick<AboutTurn, 'task'>): void {
    metrics.repairs.inc({ kind })
    logger.info({ kind, ...about }, 'reconciler repaired')
    // The repaired turn may wait in the outbox now.
    if (kind !== 'outbox') relay.kick()
  }
}

/** Returns those of some items that were among them the last time, too: what is still owed a round later has lost the process that was to do it. */
export function createForsaken<Item>(keyOf: (item: Item) => string): (items: readonly Item[]) => Item[] {
  let before = new Set<string>()
  return items => {
    const forsaken = items.filter(item => before.has(keyOf(item)))
    before = new Set(items.map(keyOf))
    return forsaken
  }
}
