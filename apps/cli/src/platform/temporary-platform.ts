/** A platform with data of its own: engines and API on a free port, in a temporary folder that is removed when it stops. */
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Platform, type PlatformOptions, startPlatform } from './platform.ts'

export type TemporaryPlatform = Platform & {
  /** What its programs have written. */
  lines: readonly string[]
}

type TemporaryOptions = Pick<PlatformOptions, 'startWorker' | 'environment' | 'agentFiles'> & {
  write?: (line: string) => void
}

/** The servers of the environment, with their keys and listeners: a platform of its own uses none of them. `SECRETS_KEY` opens no server. */
const ofOtherServers = /^(REDIS_URL|DATABASE_URL|RIVULET_KEY|RIVULET_WORKER_KEY|KEY_PEPPER|KEY_PEPPER_OLD|INTERNAL_\w+|FILES_S3_\w+)$/

export async function startTemporaryPlatform({ environment, write = () => {}, ...options }: TemporaryOptions): Promise<TemporaryPlatform> {
  const dataDir = mkdtempSync(join(tmpdir(), 'rivulet-'))
  // Postgres runs as another user when this is root.
  chmodSync(dataDir, 0o755)
  const removeData = () => rmSync(dataDir, { recursive: true, force: true })
  const lines: string[] = []
  const note = (line: string) => {
    lines.push(line)
    write(line)
  }
  const own = Object.fromEntries(Object.entries(environment).filter(([name]) => !ofOtherServers.test(name)))
  try {
    const platform = await startPlatform({
      ...{ host: '127.0.0.1', port: await freePort(), dataDir, environment: own, isWatching: false, inspectPort: null },
      ...{ ...options, write: note, hear: (program, line) => note(`${program} ${line}`) },
    })
    const stop = async () => {
      await platform.stop()
      removeData()
    }
    return { ...platform, lines, stop }
  } catch (error) {
    removeData()
    throw error
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
