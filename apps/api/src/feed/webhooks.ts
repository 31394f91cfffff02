/**
 * Delivers entries of the feed to webhooks: reads the feed, creates deliveries, and calls the addresses. Every API process takes part; Postgres gives each
 * delivery to one of them.
 */
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyBaseLogger } from 'fastify'
import type { Vault } from '../store/access/vault.ts'
import type { Database } from '../store/connection/database.ts'
import { FairSlots } from '../store/connection/fair-slots.ts'
import { everyTenant } from '../store/connection/tenant.ts'
import {
  type AttemptResult,
  claimDeliveries,
  createDeliveries,
  type DueDelivery,
  hasDeliveryWork,
  settleDelivery,
  type TenantTarget,
} from '../store/feed/deliveries.ts'
import { deliveryTarget } from '../store/feed/delivery-target.ts'
import type { TenantEntry } from '../store/feed/read-feed.ts'
import { disableWebhook } from '../store/feed/webhooks.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { callWebhook, type WebhookResponse } from './webhook-request.ts'
import { webhookHeaders } from './webhook-signature.ts'

type WebhooksDeps = {
  db: Database
  vault: Pick<Vault, 'openText'>
  logger: FastifyBaseLogger
  metrics: Metrics
  allowPrivate: boolean
}
export type Webhooks = { stop(): Promise<void> }

/** The delays between attempts: about three days in all. */
const minute = 60_000
const hour = 60 * minute
export const retryDelaysMs = [5_000, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour]

const pollMs = 500
const entriesAtOnce = 500
/** Attempts under way in this process, which tenants share; and to one host and port of a tenant. An address may hang. */
const maxUnderWay = 64
const maxOfTarget = 4
const timeoutMs = 15_000

export function startWebhooks({ db, vault, logger, metrics, allowPrivate }: WebhooksDeps): Webhooks {
  const stopping = new AbortController()
  const slots = new FairSlots({ max: maxUnderWay })
  const underWay = new Map<string, TenantTarget & { done: Promise<void> }>()
  let wake: () => void = () => {}
  const running = loop()

  return {
    async stop() {
      stopping.abort()
      wake()
      await running
      await Promise.all(Array.from(underWay.values(), ({ done }) => done))
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

  /** So few at a time that no share is exceeded, even if all of them are for the tenant and the target that have most. */
  async function begin(): Promise<void> {
    for (;;) {
      const tenants = [...new Set(Array.from(underWay.values(), ({ tenant }) => tenant))]
      const rooms = tenants.map(tenant => slots.roomFor(tenant)).filter(room => room > 0)
      const targets = countTargets()
      const spare = targets.map(({ count }) => maxOfTarget - count).filter(count => count > 0)
      const wanted = Math.min(maxOfTarget, slots.roomFor(everyTenant), ...rooms, ...spare)
      if (wanted <= 0 || stopping.signal.aborted) return
      const claimed = await claimDeliveries(db, wanted, {
        tenants: tenants.filter(tenant => slots.roomFor(tenant) === 0),
        targets: targets.filter(({ count }) => count >= maxOfTarget),
      })
      for (const delivery of claimed) attempt(delivery)
      if (claimed.length < wanted) return
    }
  }

  function countTargets(): (TenantTarget & { count: number })[] {
    const counts = new Map<string, TenantTarget & { count: number }>()
    for (const { tenant, target } of underWay.values()) {
      const name = `${tenant} ${target}`
      counts.set(name, { tenant, target, count: (counts.get(name)?.count ?? 0) + 1 })
    }
    return [...counts.values()]
  }

  function attempt(delivery: DueDelivery): void {
    const { id, tenant, url } = delivery
    slots.acquireNow(tenant)
    const done = deliver(delivery)
      .catch(error => logger.warn({ err: error, delivery: id }, 'could not record a webhook delivery'))
      .finally(() => {
        underWay.delete(id)
        slots.release(tenant)
        // There may be more for its target.
        wake()
      })
    underWay.set(id, { tenant, target: deliveryTarget(url), done })
  }

  async function deliver(delivery: DueDelivery): Promise<void> {
    const { id, webhook, attempts } = delivery
    if (failpoint) await failpoint('delivery claimed')
    const response = await send(delivery)
    if (failpoint) await failpoint('delivered')
    const result = resultOf(response, attempts)
    metrics.webhookAttempts.inc({ result: result.at })
    if (result.at === 'failed') logger.info({ delivery: id, webhook, attempts, ...response }, 'a webhook attempt failed')
    if (isGone(response) && webhook !== null) await disableWebhook(db, webhook)
    await settleDelivery(db, id, result)
  }

  /** A receiver would reject a delivery without its signature, so none is sent. */
  async function send({ id, tenant, url, payload: body, secrets }: DueDelivery): Promise<WebhookResponse> {
    const opened = secrets.flatMap(secret => vault.openText(tenant, secret) ?? [])
    if (opened.length < secrets.length) return { error: 'No SECRETS_KEY decrypts the secret of this webhook; rotate it' }
    const headers = webhookHeaders(opened, { id, at: new Date(), body })
    return callWebhook({ url, headers, body, allowPrivate, timeoutMs })
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
