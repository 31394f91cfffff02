/** Removes what has expired: old tasks, bytes of files, and rows that are kept for a time. */
import type { LogAnnouncer } from '@rivulet/broker'
import type { TaskId } from '@rivulet/protocol'
import type { FastifyBaseLogger } from 'fastify'
import type { Files } from '../../files/files.ts'
import { forgetAudit } from '../../store/access/audit.ts'
import { forgetOldKeys } from '../../store/access/idempotency.ts'
import { forgetRevocations } from '../../store/access/token-revocations.ts'
import type { Vault } from '../../store/access/vault.ts'
import { forgetWorkers } from '../../store/agents/agents.ts'
import type { Database } from '../../store/connection/database.ts'
import { forgetDeliveries } from '../../store/feed/deliveries.ts'
import { readHeldFeed } from '../../store/feed/held-feed.ts'
import { renewDeliveries, renewSchedules, renewTasks } from '../../store/feed/on-end-secrets.ts'
import { forgetFeed } from '../../store/feed/read-feed.ts'
import { renewWebhookSecrets } from '../../store/feed/webhooks.ts'
import { removeOldTasks } from '../../store/tasks/remove-task.ts'
import { forgetSteps } from '../../store/tasks/steps.ts'
import { rewrapSecrets } from '../../store/tasks/task-secrets.ts'
import { forgetUsage } from '../../store/usage/read-usage.ts'
import { forgetSignals } from '../../store/waits/signals.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

const everyMs = 60_000
const feedBatch = 5_000
/** So many pages of tasks are searched for secrets that the current key has not sealed in one round: 100,000 tasks a minute. */
const taskPages = 20
/** The transactions of an API end within seconds. */
const heldFeedSeconds = 30
/** So many old tasks are removed at once, and so often in one round: what ended is in no hurry, what has to be mended is. */
const removal = { batchSize: 100, batches: 10 }

export type HousekeepingDeps = {
  db: Database
  announcer: LogAnnouncer
  files: Files
  vault: Vault
  logger: FastifyBaseLogger
  metrics: Metrics
  /** How long an ended task is kept; null: for ever. */
  taskRetentionMs: number | null
  /** How long the rows of usage, and those of the audit log, are kept. */
  usageRetentionMs: number
  auditRetentionMs: number
}

export function createHousekeeping(deps: HousekeepingDeps, stopping: AbortSignal) {
  const { db, announcer, files, vault, logger, metrics, taskRetentionMs, usageRetentionMs, auditRetentionMs } = deps
  let lastTime = Number.NEGATIVE_INFINITY
  /** The task that was looked at last, of those that may be old. */
  let removedUpTo: string | null = null
  /** The task that was looked at last, of those whose `onEnd` may have a secret that the current key has not sealed. */
  let renewedUpTo: TaskId | null = null
  let isEverySecretSealed = false
  return { removeOld, sweepFiles, forgetRows }

  async function removeOld(): Promise<void> {
    const keptMs = taskRetentionMs
    if (keptMs === null) return
    for (let batch = 0; batch < removal.batches && !stopping.aborted; batch += 1) {
      const { removed, next } = await removeOldTasks(db, { keptMs, after: removedUpTo, limit: removal.batchSize })
      removedUpTo = next
      // Their logs expire by themselves, too.
      await Promise.all(removed.map(task => announcer.remove(task).catch(() => {})))
      if (removed.length > 0) {
        await forgetOldKeys(db, keptMs)
        logger.info({ tasks: removed.length }, 'removed old tasks')
      }
      if (next === null) return
    }
  }

  /** Bytes of uploads that were cut, and of files that no task needs. */
  async function sweepFiles(): Promise<void> {
    const removed = await files.sweep()
    if (removed === 0) return
    metrics.repairs.inc({ kind: 'file' }, removed)
    logger.info({ files: removed }, 'removed the bytes of files that are gone or were never complete')
  }

  /**
   * Seals what is stored in the clear, and after a rotation what the old key has sealed. Without an old key, once is enough: nothing is stored in the
   * clear any more.
   */
  async function renewSecrets(): Promise<void> {
    const { oldKeyName, rewrap, hasKey } = vault
    if (!hasKey || (isEverySecretSealed && oldKeyName === null)) return
    let renewed = 0
    const steps = [
      async () => (oldKeyName === null ? 0 : rewrapSecrets(db, oldKeyName, rewrap, feedBatch)),
      () => renewWebhookSecrets(db, vault, feedBatch),
      () => renewSchedules(db, vault, feedBatch),
      () => renewDeliveries(db, vault, feedBatch),
    ]
    for (const step of steps) for (let last = feedBatch; last === feedBatch && !stopping.aborted; renewed += last) last = await step()
    for (let page = 0; page < taskPages && !stopping.aborted; page += 1) {
      const result = await renewTasks(db, vault, renewedUpTo, feedBatch)
      renewed += result.moved
      renewedUpTo = result.next
      isEverySecretSealed = renewedUpTo === null
      if (isEverySecretSealed) break
    }
    if (renewed > 0) logger.info({ moved: renewed }, 'encrypted secrets with SECRETS_KEY')
  }

  /** Once a minute. */
  async function forgetRows(): Promise<void> {
    if (performance.now() - lastTime < everyMs) return
    lastTime = performance.now()
    await reportHeldFeed()
    await forgetOldKeys(db, taskRetentionMs)
    await forgetSteps(db)
    await forgetSignals(db)
    await forgetRevocations(db)
    await forgetWorkers(db)
    while ((await forgetFeed(db, feedBatch)) && !stopping.aborted);
    while ((await forgetUsage(db, { keptMs: usageRetentionMs, limit: feedBatch })) && !stopping.aborted);
    while ((await forgetAudit(db, { keptMs: auditRetentionMs, limit: feedBatch })) && !stopping.aborted);
    while ((await forgetDeliveries(db, feedBatch)) && !stopping.aborted);
    await renewSecrets()
  }

  /** No entry is lost, so a log line is enough. */
  async function reportHeldFeed(): Promise<void> {
    const { seconds, holder } = await readHeldFeed(db)
    if (seconds > heldFeedSeconds)
      logger.warn(
        { seconds: Math.round(seconds), holder },
        'an open transaction in Postgres keeps changes from the feed and webhooks; end it',
      )
  }
}
