/**
 * The URL of Redis, in its three forms:
 *
 *   redis://user:password@10.0.0.1:6379                                            one server
 *   redis://user:password@10.0.0.1:6379,10.0.0.2:6379                              a cluster, by any of its servers
 *   redis+sentinel://user:password@10.0.0.1:26379,10.0.0.2:26379/mymaster          a master and its replicas, by their Sentinels
 *
 * User, password and TLS (`rediss:`, `rediss+sentinel:`) hold for all servers. Sentinels use the same TLS, and a login of their own, if they need one:
 * `?sentinelUsername=…&sentinelPassword=…`. No message contains a part of the URL, because it may hold a password.
 */
export type RedisAddress = { host: string; port: number }

export type RedisLogin = { username?: string; password?: string }

export type RedisUrl = {
  isTls: boolean
  login: RedisLogin
  /** The servers, or the Sentinels, that the URL names: at least one. */
  addresses: [RedisAddress, ...RedisAddress[]]
} & ({ kind: 'single' } | { kind: 'cluster' } | { kind: 'sentinel'; masterName: string; sentinelLogin: RedisLogin })

/** Throws when the URL has none of the forms. */
export function parseRedisUrl(url: string): RedisUrl {
  const parsed = read(url)
  if (typeof parsed === 'string') throw new Error(`The Redis URL ${parsed}`)
  return parsed
}

/** The end of a sentence that begins with the name of the URL; null for a valid URL. */
export function whyNotRedisUrl(url: string): string | null {
  const parsed = read(url)
  return typeof parsed === 'string' ? parsed : null
}

const form = /^redis(?<tls>s?)(?<sentinel>\+sentinel)?:\/\/(?:(?<login>[^/?]*)@)?(?<hosts>[^@/?]*)(?:\/(?<path>[^?]*))?(?:\?(?<query>.*))?$/

/** A string is the reason why the URL is invalid. */
function read(url: string): RedisUrl | string {
  const { tls, sentinel, login = '', hosts = '', path = '', query = '' } = form.exec(url)?.groups ?? {}
  if (tls === undefined) return 'must be a redis:// URL'
  const names = hosts.split(',')
  // Only a single server may be left out: it is then on this machine.
  if ((names.length > 1 || sentinel) && names.some(name => hostOf(name) === ''))
    return 'has an empty host: name one before and after each comma'
  const addresses = names.map(name => addressOf(name, sentinel ? 26_379 : 6_379))
  if (addresses.some(({ port }) => !(port > 0 && port < 65_536))) return 'has a port that is not a number from 1 to 65535'
  const logins = loginOf(login)
  if (logins === null) return 'has a user or password that is not percent-encoded'
  const common = { isTls: tls === 's', login: logins, addresses: addresses as RedisUrl['addresses'] }
  // ioredis would connect there, although the URL seems to name this machine.
  if (/(^|&)host=/.test(query)) return 'may not have the parameter host: name the host after the two slashes'
  if (!sentinel) return { kind: names.length > 1 ? 'cluster' : 'single', ...common }
  const masterName = decode(path)
  if (!masterName || masterName.includes('/')) return 'must end with the name of the master, as in redis+sentinel://10.0.0.1:26379/mymaster'
  const sentinelLogin = sentinelLoginOf(query)
  return typeof sentinelLogin === 'string' ? sentinelLogin : { kind: 'sentinel', ...common, masterName, sentinelLogin }
}

function addressOf(name: string, defaultPort: number): RedisAddress {
  const [, port = ''] = /:([^\]:]*)$/.exec(name) ?? []
  return { host: hostOf(name) || '127.0.0.1', port: port === '' ? defaultPort : Number(port) }
}

/** Without the port, and without the brackets of an IPv6 address. */
function hostOf(name: string): string {
  return name.replace(/:[^\]:]*$/, '').replace(/^\[(.*)\]$/, '$1')
}

/** Null when it cannot be decoded. */
function loginOf(text: string): RedisLogin | null {
  const at = text.indexOf(':')
  const [username, password] = [at < 0 ? text : text.slice(0, at), at < 0 ? '' : text.slice(at + 1)].map(decode)
  if (username === undefined || password === undefined) return null
  return { ...(username && { username }), ...(password && { password }) }
}

function sentinelLoginOf(query: string): RedisLogin | string {
  const login: RedisLogin = {}
  for (const part of query.split('&').filter(Boolean)) {
    const [name = '', text = ''] = part.split(/=(.*)/s)
    const value = decode(text)
    if (name !== 'sentinelUsername' && name !== 'sentinelPassword')
      return 'may have the parameters sentinelUsername and sentinelPassword only'
    if (value === undefined) return `has a ${name} that is not percent-encoded`
    login[name === 'sentinelUsername' ? 'username' : 'password'] = value
  }
  return login
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
