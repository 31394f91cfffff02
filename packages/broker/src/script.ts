/**
 * A Lua script that knows which life of Redis it runs in.
 *
 * The run id is part of the script's text, and Redis forgets its scripts when it restarts. So a call that a client sends again to a server
 * that has restarted (and may have lost the end of its data) is answered NOSCRIPT, not executed; the script is then loaded with the new id.
 */
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

export type Script = { run(keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> }

export function createScript(redis: Redis, name: string, constants: Record<string, string> = {}): Script {
  const source = readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8')
  let loaded: Promise<string> | null = null

  return { run }

  async function run(keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    try {
      return await redis.evalsha(await sha(), keys.length, ...keys, ...args)
    } catch (error) {
      if (!isNoScript(error)) throw error
      loaded = null
      return redis.evalsha(await sha(), keys.length, ...keys, ...args)
    }
  }

  function sha(): Promise<string> {
    loaded ??= load().catch(error => {
      loaded = null
      throw error
    })
    return loaded
  }

  async function load(): Promise<string> {
    for (;;) {
      const runId = await readRunId(redis)
      const text = Object.entries(constants).reduce((lua, [key, value]) => lua.replaceAll(`@${key}@`, value), source)
      const digest = (await redis.script('LOAD', text.replaceAll('@RUN_ID@', runId))) as string
      // Redis may have restarted between the two: then this script claims a life that is over.
      if ((await readRunId(redis)) === runId) return digest
    }
  }
}

async function readRunId(redis: Redis): Promise<string> {
  const info = await redis.info('server')
  return /^run_id:(\w+)/m.exec(info)?.[1] ?? ''
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
