/**
 * Checks the `Host` of a request against `ALLOWED_HOSTS`, if that is set. It stops pages that point their own domain at this API (DNS
 * rebinding). IP addresses and the names of this machine are always allowed, because no foreign page can have such an address and health checks
 * use them. `/healthz` and `/readyz` accept any name, because they reveal nothing and load balancers use names of their own.
 */
import { isIP } from 'node:net'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'

/** @param allowed in lower case; where it is empty, every name is allowed */
export function checkHosts(app: FastifyInstance, allowed: ReadonlySet<string>): void {
  if (allowed.size === 0) return
  app.addHook('onRequest', async ({ headers: { host }, routeOptions: { config } }) => {
    const name = hostNameOf(host)
    if (config?.contract?.anyHost || isOfThisMachine(name) || allowed.has(name)) return
    throw new RivuletError('forbidden', 'ALLOWED_HOSTS does not list the name in Host')
  })
}

/** What a `Host` header names, without its port; without the header (HTTP/1.0), this machine. */
export function hostNameOf(host = 'localhost'): string {
  const name = host.replace(/:\d*$/, '').replace(/\.$/, '')
  return name.replace(/^\[(.*)\]$/, '$1').toLowerCase()
}

/** An address, or a name that leads nowhere else. */
export function isOfThisMachine(name: string): boolean {
  return isIP(name) !== 0 || name === 'localhost' || name.endsWith('.localhost')
}
