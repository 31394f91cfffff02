/**
 * Real Redis and Postgres without installing them.
 *
 * A URL that is handed in is used as it is and never touched. Otherwise a server is started for the caller alone: one from PATH, or the
 * embedded one. It listens on 127.0.0.1, keeps its data in a folder of its own, and ends when its caller ends, however that happens.
 */
import { resolve } from 'node:path'
import { type GuardedEngine, startGuardian } from './guardian-handle.ts'

export type Engine = {
  url: string
  /** external: the URL that was handed in. native: a server from PATH. embedded: one that came with the packages. */
  kind: 'external' | 'native' | 'embedded'
  /** For people, without a password: `valkey 9.1 (wasm), data in .rivulet/redis`. */
  description: string
  /** The server's process; null when it is not ours. */
  pid: number | null
  /** Resolves when the server ends before it is told to, with what is known of that, for people. Never with an external one. */
  lost: Promise<string>
  /** Ends the server and keeps its data. Resolves when the process is gone. An external server is left alone. */
  stop(): Promise<void>
}

export type EngineOptions = {
  /** Use this server and start none. */
  url?: string | undefined
  /** Data goes to `redis` or `postgres` in this folder, which is made when absent. */
  dataDir: string
  /** Port on 127.0.0.1; 0 or absent: a free one. */
  port?: number | undefined
  /** native, the default: a server from PATH, else the embedded one. embedded: PATH is not looked at. */
  prefer?: 'native' | 'embedded' | undefined
  /** Where native servers are looked for, as in PATH. Absent: nowhere. */
  path?: string | undefined
}

export function startRedis(options: EngineOptions): Promise<Engine> {
  return startEngine('redis', ['redis:', 'rediss:'], options)
}

/** The URL is that of a database named `rivulet`. */
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
  // A cluster's has several addresses, separated by commas.
  const [first = ''] = url.split(',')
  const parsed = URL.canParse(first) ? new URL(first) : null
  // The URL itself stays out of the message: it may hold a password.
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
