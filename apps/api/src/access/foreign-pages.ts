/**
 * Pages of other origins, where no key is asked for. A browser that can reach this machine sends what they ask for, and only hides the answer:
 * a POST without a body needs no leave beforehand (CORS). So what changes something is refused to them, unless `CORS_ORIGINS` has their origin.
 *
 * Programs send neither `Sec-Fetch-Site` nor `Origin`, and are not concerned. Where keys are asked for, a page cannot send one without leave.
 */
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance, FastifyRequest } from 'fastify'

const changesNothing: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

export function refuseForeignPages(scope: FastifyInstance, origins: ReadonlySet<string>): void {
  scope.addHook('onRequest', async ({ method, headers }) => {
    if (changesNothing.has(method) || !isForeign(headers) || origins.has(headers.origin ?? '')) return
    throw new RivuletError(
      'forbidden',
      'An API without keys rejects changes from pages of other origins; CORS_ORIGINS lists the allowed ones',
    )
  })
}

/** Browsers of before 2023 do not send `Sec-Fetch-Site`; with them, another host in `Origin` is another origin. */
function isForeign({ 'sec-fetch-site': site, origin, host }: FastifyRequest['headers']): boolean {
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  return origin !== undefined && hostOf(origin) !== host
}

/** `null` is the origin of what hides its own. */
function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null
}
