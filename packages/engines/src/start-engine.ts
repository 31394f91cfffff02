/**
 * Starts real Redis and Postgres without installing them.
 *
 * With a URL, nothing is started and that server is not contacted. Otherwise a private server is started for the caller: one from PATH, or the
 * embedded one. It listens on 127.0.0.1, keeps its data in its own folder, and ends when its caller ends, even by a kill.
 */
import { resolve } from 'node:path'
import type { Engine } from './engine.ts'
import { type GuardedEngine, startGuardian } from './guardian/guardian-handle.ts'

export type EngineOptions = {
  /** Use this server and start none. */
  url?: string | undefined
  /** Data is stored in `redis` or `postgres` in this folder, which is created when absent. */
  dataDir: string
  /** Port on 127.0.0.1; 0 or absent: a free one. */
  port?: number | undefined
  /** native, the default: a server from PATH, else the embedded one. embedded: PATH is ignored. */
  prefer?: 'native' | 'embedded' | undefined
  /** The folders to search for native servers, in the format of PATH. Default: none. */
  path?: string | undefined
}

export function startRedis(options: EngineOptions): Promise<Engine> {
  return startEngine('redis', ['redis:', 'rediss:', 'redis+sentinel:', 'rediss+sentinel:'], options)
}

/** The URL of the engine names a database `rivulet`. */
export function startPostgres(options: EngineOptions): Promise<Engine> {
  return startEngine('postgres', ['postgres:', 'postgresql:'], options)
}

async function startEngine(name: GuardedEngine, protocols: string[], options: EngineOptions): Promise<Engine> {
  if (options.url !== undefined) return externalEngine(name, protocols, options.url)
  return await startGuardian({
    engine: name,
    folder: resolve(options.dataDir, name),
    port: options.port ?? 0,
    prefer: options.prefer ?? 'native',
    path: options.path ?? '',
  })
}

function externalEngine(name: GuardedEngine, protocols: string[], url: string): Engine {
  // The URL of a cluster, or of Sentinels, has several addresses, separated by commas.
  const [first = ''] = url.split(',')
  const parsed = URL.canParse(first) ? new URL(first) : null
  // The message does not contain the URL, because it may hold a password.
  if (!parsed || !protocols.includes(parsed.protocol)) throw new Error(`The ${name} URL must begin with ${protocols.join('// or ')}//`)
  return {
    url,
    kind: 'external',
    description: `${name} at ${parsed.host || 'localhost'}`,
    pid: null,
    lost: new Promise(() => {}),
    stop: async () => {},
  }
}
