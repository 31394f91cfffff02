/**
 * Addresses that are not on the public internet. A tenant chooses the addresses of its webhooks, and must not be able to reach this machine or its network
 * through the server.
 */
import { BlockList, isIP } from 'node:net'
import { RivuletError } from '@rivulet/protocol'

const blocked = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  blocked.addSubnet(network, prefix, 'ipv4')
for (const [network, prefix] of [
  // The unspecified address, this machine, and IPv4 inside IPv6 as `::127.0.0.1`.
  ['::', 96],
  // IPv4 inside IPv6, in ways that a router may translate back.
  ['::ffff:0:0:0', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2002::', 16],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['3fff::', 20],
  ['5f00::', 16],
  ['100::', 64],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const)
  blocked.addSubnet(network, prefix, 'ipv6')

/** Text that is not an address is private, too. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 0) return true
  return blocked.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

/** Whether the host of a URL is an address or a name that can only mean a private one. Other names are checked when they are resolved. */
export function isPrivateHost({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  return isIP(host) ? isPrivateAddress(host) : host === 'localhost' || /\.(localhost|local|internal)$/.test(host)
}

/** @param path of the URL in the request */
export function requirePublicHost(url: string, path: string): void {
  if (!isPrivateHost(new URL(url))) return
  const reason = 'The address is not on the public internet (WEBHOOK_ALLOW_PRIVATE)'
  throw new RivuletError('validation_failed', 'Request validation failed', { details: [{ path, reason }] })
}
