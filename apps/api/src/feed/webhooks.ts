/**
 * Delivers entries of the feed to webhooks: reads the feed, creates deliveries, and calls the addresses. Every API process takes part; Postgres gives each
 * delivery to one of them.
 */
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyBaseLogger } from 'fastify'
import type { Database } from '../store/connection/database.ts'
import {
  type AttemptResult,
  claimDeliveries,
  createDeliveries,
  type DueDelivery,
  hasDeliveryWork,
  settleDelivery,
} from '../store/feed/deliveries.ts'
import type { TenantEntry } from '../store/feed/read-feed.ts'
import { disableWebhook } from '../store/feed/webhooks.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { callWebhook, type WebhookResponse } from './webhook-request.ts'
import { webhookHeaders } from './webhook-signature.ts'

export type WebhooksDeps = { db: Database; logger: FastifyBaseLogger; metrics: Metrics; allowPrivate: boolean }
export type Webhooks = { stop(): Promise<void> }

/** The delays between attempts: about three days in all. */
const minute = 60_000
const hour = 60 * minute
export const retryDelaysMs = [5_000, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour]

const pollMs = 500
const entriesAtOnce = 500
/** Attempts under way in this process: at most so many, and at most so many to one target, because an address may hang. */
const maxUnderWay = 32
const maxOfOne = 4
const timeoutMs = 15_000

export function startWebhooks({ db, logger, metrics, allowPrivate }: WebhooksDeps): Webhooks {
  const stopping = new AbortController()
  const underWay = new Map<string, Promise<void>>()
  /** Attempts under way to each target. */
  const ofTarget = new Map<string, number>()
  let wake: () => void = () => {}
  const running = loop()

  return {
    async stop() {
      stopping.abort()
      wake()
      await running
      await Promise.all(underWay.values())
    },
  }

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        if (await hasDeliveryWork(db)) {
          while ((await createDeliveries(db, entriesAtOnce, payloadOf)) && !stopping.signal.aborted);
          await begin()
        }
      } catch (error) {
        logger.warn({ err: error }, 'could not prepare webhook deliveries; retrying')
      }
      if (!stopping.signal.aborted) await pause()
    }
  }

  /** Until the next time, or until an attempt is over. */
  function pause(): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, pollMs)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** So few at a time that no target gets more than it may have, even if all of them are for the one that has most. */
  async function begin(): Promise<void> {
    for (;;) {
      const full = Array.from(ofTarget).flatMap(([target, attempts]) => (attempts >= maxOfOne ? [target] : []))
      const most = Math.max(0, ...Array.from(ofTarget.values()).filter(attempts => attempts < maxOfOne))
      const wanted = Math.min(maxOfOne - most, maxUnderWay - underWay.size)
      if (wanted <= 0 || stopping.signal.aborted) return
      const claimed = await claimDeliveries(db, wanted, full)
      for (const delivery of claimed) attempt(delivery)
      if (claimed.length < wanted) return
    }
  }

  function attempt(delivery: DueDelivery): void {
    const { id, target } = delivery
    count(target, 1)
    const done = deliver(delivery)
      .catch(error => logger.warn({ err: error, delivery: id }, 'could not record a webhook delivery'))
      .finally(() => {
        underWay.delete(id)
        count(target, -1)
        // There may be more for its target.
        wake()
      })
    underWay.set(id, done)
  }

  function count(target: string, by: number): void {
    const attempts = (ofTarget.get(target) ?? 0) + by
    if (attempts > 0) ofTarget.set(target, attempts)
    else ofTarget.delete(target)
  }

  async function deliver({ id, webhook, url, payload: body, secrets, attempts }: DueDelivery): Promise<void> {
    if (failpoint) await failpoint('delivery claimed')
    const headers = webhookHeaders(secrets, { id, at: new Date(), body })
    const response = await callWebhook({ url, headers, body, allowPrivate, timeoutMs })
    if (failpoint) await failpoint('delivered')
    const result = resultOf(response, attempts)
    metrics.webhookAttempts.inc({ result: result.at })
    if (result.at === 'failed') logger.info({ delivery: id, webhook, attempts, ...response }, 'a webhook attempt failed')
    if (isGone(response) && webhook !== null) await disableWebhook(db, webhook)
    await settleDelivery(db, id, result)
  }
}

export function resultOf(response: WebhookResponse, attempts: number): AttemptResult {
  if ('status' in response && response.status >= 200 && response.status < 300) return { at: 'delivered', lastStatus: response.status }
  const retryInMs = isGone(response) ? null : (retryDelaysMs[attempts - 1] ?? null)
  return {
    at: 'failed',
    ...('status' in response ? { lastStatus: response.status, lastError: null } : { lastStatus: null, lastError: response.error }),
    // Jittered, so that the attempts of an address that was down do not come in step.
    retryInMs: retryInMs === null ? null : retryInMs * (0.9 + Math.random() * 0.2),
  }
}

function isGone(response: WebhookResponse): boolean {
  return 'status' in response && response.status === 410
}

/** Thin: what changed, and where to read it. */
export function payloadOf({ tenant: _, seq: __, type, at, ...data }: TenantEntry): string {
  return JSON.stringify({ type, timestamp: at, data })
}
