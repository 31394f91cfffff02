/**
 * A Lua script whose text contains the life of the Redis server: it changes when the server restarts, and when it becomes a master again.
 *
 * Redis forgets its scripts when it restarts. So a call that a client sends again to a restarted server, which may have lost the end of its data, fails
 * with NOSCRIPT; the script is then loaded with the new life. A new connection, and a cluster with other masters, load it again, because an older script
 * may still be there. In a cluster, each server has its own life, so the script is loaded for each shard, through a key of that shard.
 */
import { createHash } from 'node:crypto'
import { Cluster } from 'ioredis'
import { publishCommand } from './channels.ts'
import type { RedisConnection } from './connections.ts'
import { tagOf } from './keys.ts'
import { readLua } from './lua-source.ts'

/** All keys of a call must belong to one shard. */
export type Script = { run(keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> }

export function createScript(redis: RedisConnection, name: string, constants: Record<string, string> = {}): Script {
  const life = readLua('life')
  const source = ['life', 'position', name].map(readLua).join('').replaceAll('@PUBLISH@', publishCommand(redis))
  const loaded = new Map<string, Promise<string>>()
  let masters = ''
  for (const event of ['ready', '+node']) redis.on(event, () => loaded.clear())
  redis.on('refresh', noteMasters)
  return { run }

  async function run(keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const [key = ''] = keys
    try {
      return await redis.evalsha(await sha(key), keys.length, ...keys, ...args)
    } catch (error) {
      if (!isNoScript(error)) throw error
      loaded.delete(placeOf(key))
      return redis.evalsha(await sha(key), keys.length, ...keys, ...args)
    }
  }

  function sha(key: string): Promise<string> {
    const place = placeOf(key)
    const known =
      loaded.get(place) ??
      load(key).catch(error => {
        loaded.delete(place)
        throw error
      })
    loaded.set(place, known)
    return known
  }

  function placeOf(key: string): string {
    return redis.isCluster ? tagOf(key) : ''
  }

  /** A cluster has read which server has which slots. */
  function noteMasters(): void {
    const now = mastersOf(redis)
    if (now !== masters) loaded.clear()
    masters = now
  }

  async function load(key: string): Promise<string> {
    for (;;) {
      const current = await readLife(key)
      const constant = Object.entries(constants).reduce((lua, [from, to]) => lua.replaceAll(`@${from}@`, to), source)
      const text = `${onlyLoad}${constant.replaceAll('@LIFE@', current)}`
      await redis.eval(text, 1, key, loading)
      // If another life began between the two calls, the script has the old one: load it again.
      if ((await readLife(key)) === current) return createHash('sha1').update(text).digest('hex')
    }
  }

  /** The life of the server that has this key; in a cluster, a command reaches that server only by naming a key. */
  async function readLife(key: string): Promise<string> {
    return String(await redis.eval(`${life}return currentLife()`, 1, key))
  }
}

/** The masters of a cluster in the order of their slots. */
function mastersOf(redis: RedisConnection): string {
  const all = redis instanceof Cluster ? redis.slots.map(([master]) => master) : []
  return all.filter((master, slot) => slot === 0 || master !== all[slot - 1]).join(' ')
}

/** SCRIPT LOAD takes no key, so a script is loaded by running it with this argument, with which it does nothing. */
const loading = 'load'
const onlyLoad = `if ARGV[1] == '${loading}' then return end\n`

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.includes('NOSCRIPT')
}
