/**
 * Rejects changes from pages of other origins, unless `CORS_ORIGINS` lists the origin, on an API without keys and for MCP, which requires it. A
 * browser sends their requests and only hides the response, and a POST without a body needs no preflight.
 *
 * Programs send neither `Sec-Fetch-Site` nor `Origin`, so this does not affect them. On an API with keys a foreign page has no key to send.
 */
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance, FastifyRequest } from 'fastify'

const changesNothing: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

export function rejectForeignPages(scope: FastifyInstance, origins: ReadonlySet<string>): void {
  scope.addHook('onRequest', async ({ method, headers }) => {
    if (changesNothing.has(method) || !isForeign(headers) || origins.has(headers.origin ?? '')) return
    throw new RivuletError('forbidden', 'The API rejects changes from pages of other origins; CORS_ORIGINS lists the allowed ones')
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
