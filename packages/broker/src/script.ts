/**
 * A Lua script whose text contains the run id of the Redis server.
 *
 * Redis forgets its scripts when it restarts. So a call that a client sends again to a restarted server, which may have lost the end of its
 * data, fails with NOSCRIPT instead of running; the script is then loaded with the new run id. A new connection loads the script again, because
 * another process may have loaded one with the old run id after the restart, and logs opened by it would look stale to all other processes.
 * In a cluster, each server has its own run id, so the script is loaded for each shard, through a key of that shard.
 */
import { createHash } from 'node:crypto'
import type { RedisConnection } from './connections.ts'
import { tagOf } from './keys.ts'
import { readLua } from './lua-source.ts'

/** All keys of a call must belong to one shard. */
export type Script = { run(keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> }

export function createScript(redis: RedisConnection, name: string, constants: Record<string, string> = {}): Script {
  const source = ['position', name].map(readLua).join('')
  const loaded = new Map<string, Promise<string>>()
  for (const event of ['ready', '+node']) redis.on(event, () => loaded.clear())
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

  async function load(key: string): Promise<string> {
    for (;;) {
      const runId = await readRunId(key)
      const constant = Object.entries(constants).reduce((lua, [from, to]) => lua.replaceAll(`@${from}@`, to), source)
      const text = `${onlyLoad}${constant.replaceAll('@RUN_ID@', runId)}`
      await redis.eval(text, 1, key, loading)
      // If Redis restarted between the two calls, the script has an old run id: load it again.
      if ((await readRunId(key)) === runId) return createHash('sha1').update(text).digest('hex')
    }
  }

  /**
   * The run id of the server that has this key; in a cluster, a command reaches that server only by naming a key. The first 16 characters are
   * enough, and keep a log's state small enough for Redis's compact encoding.
   */
  async function readRunId(key: string): Promise<string> {
    const info = String(await redis.eval("return redis.call('INFO', 'server')", 1, key))
    return /^run_id:(\w{1,16})/m.exec(info)?.[1] ?? ''
  }
}

/** SCRIPT LOAD takes no key, so a script is loaded by running it with this argument, with which it does nothing. */
const loading = 'load'
const onlyLoad = `if ARGV[1] == '${loading}' then return end\n`

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
