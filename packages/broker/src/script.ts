/**
 * A Lua script that knows which life of Redis it runs in.
 *
 * The run id is part of the script's text, and Redis forgets its scripts when it restarts. So a call that a client sends again to a server
 * that has restarted (and may have lost the end of its data) is answered NOSCRIPT, not executed; the script is then loaded with the new id.
 * What is known of a server counts for one connection: another process may have brought a script of the old life along, which was on its way
 * when the server restarted, and whoever went on with it would open logs that nobody else takes for those of this life.
 *
 * The servers of a cluster live their own lives. There a script is loaded for each shard, through a key of it, so that whichever server has the
 * shard is asked; where another has taken it over, it does not know the script, and is asked in turn.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { RedisConnection } from './connections.ts'
import { tagOf } from './keys.ts'

/** All keys of a call belong to one shard. */
export type Script = { run(keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> }

export function createScript(redis: RedisConnection, name: string, constants: Record<string, string> = {}): Script {
  const source = ['position', name].map(part => readFileSync(new URL(`./lua/${part}.lua`, import.meta.url), 'utf8')).join('')
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
      // Redis may have restarted between the two: then this script claims a life that is over.
      if ((await readRunId(key)) === runId) return createHash('sha1').update(text).digest('hex')
    }
  }

  /**
   * Of the server that has this key: in a cluster, only what names a key gets there. A part of it tells lives apart as well, and keeps a log's
   * state within what Redis stores compactly.
   */
  async function readRunId(key: string): Promise<string> {
    const info = String(await redis.eval("return redis.call('INFO', 'server')", 1, key))
    return /^run_id:(\w{1,16})/m.exec(info)?.[1] ?? ''
  }
}

/** SCRIPT LOAD names no key. So a script is run to be loaded, and does nothing then. */
const loading = 'load'
const onlyLoad = `if ARGV[1] == '${loading}' then return end\n`

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
