/**
 * Children of turns: a worker spawns them, and their end lets the turn that waits for them go on. Everything is committed first, then announced. What a
 * crash leaves undone, the reconciler does.
 */
import type { LogAnnouncer } from '@rivulet/broker'
import type { SpawnBody, SpawnResult } from '@rivulet/contract/internal'
import type { TaskId } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import { type ParentTurn, parentTurnOf, wakeParent } from '../store/children/child-ends.ts'
import { spawnChildren, type TreeLimits } from '../store/children/spawn-children.ts'
import type { Database } from '../store/connection/database.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Relay } from './relay.ts'
import type { TurnAnnouncing } from './turn-announcing.ts'

type ChildTasksDeps = {
  db: Database
  announcer: LogAnnouncer
  announcing: TurnAnnouncing
  relay: Relay
  metrics: Metrics
  limits: TreeLimits
}

export type ChildTasks = ReturnType<typeof createChildTasks>

export function createChildTasks({ db, announcer, announcing, relay, metrics, limits }: ChildTasksDeps) {
  return { spawn, ended, wake }

  /**
   * The children and their waits are announced before the worker gets its answer.
   *
   * @param agents those that the worker's key allows; null: all
   */
  async function spawn(body: SpawnBody, agents: readonly string[] | null): Promise<SpawnResult> {
    const spawned = await spawnChildren(db, body, { ...limits, agents })
    if (spawned.result !== 'spawned') return spawned
    if (failpoint) await failpoint('spawned')
    relay.kick()
    for (const { task, turn } of spawned.accepted) {
      metrics.tasks.inc()
      if (turn) await announcing.announceQueued(turn, true)
      metrics.children.inc({ agent: metrics.agentLabel(task.agent) })
    }
    await announcing.announceChildren(spawned.turn.task)
    const isTold = spawned.waits.length === 0 || (await announcing.announceWaits(spawned.turn))
    return { result: 'spawned', children: spawned.children, waits: spawned.waits, isTold }
  }

  /** After the commit that ended a task, if it is a child. */
  async function ended(task: TaskId): Promise<void> {
    const parent = await parentTurnOf(db, task)
    if (!parent) return
    if (failpoint) await failpoint('child ended')
    await announcing.announceChildren(parent.task)
    await wake(parent)
  }

  async function wake(parent: ParentTurn): Promise<boolean> {
    const turn = await wakeParent(db, parent)
    if (!turn) return false
    relay.kick()
    await announcing.announceWaits(turn)
    if (turn.worker) await announcer.tellAnswered(turn.worker, turn.id).catch(() => {})
    return true
  }
}
