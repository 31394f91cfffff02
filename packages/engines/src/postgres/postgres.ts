/**
 * Runs Postgres for one data folder: postgres and initdb from PATH, else the embedded ones. Only programs of the major version that created the
 * data are used on it.
 *
 * It listens on 127.0.0.1 only, and requires a password.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { GuardianJob } from '../guardian/guardian-handle.ts'
import { commandOf, findProcesses, nameProcess } from '../guardian/process-name.ts'
import { endLeftover, endProcess, type RunningServer, type ServerProcess, spawnServer, waitUntilReady } from '../guardian/running-server.ts'
import { readPassword } from '../password.ts'
import { startOnPort } from '../ports.ts'
import { makeData } from './postgres-data.ts'
import { findHome, type PostgresHome } from './postgres-home.ts'
import { findEmbeddedFolder, findNativePostgres, type PostgresPrograms, prepareEmbeddedPostgres } from './postgres-programs.ts'

/** Fast shutdown: Postgres rolls back open transactions and disconnects clients. */
const stopSignal = 'SIGINT'

export async function runPostgres(job: GuardianJob, signal: AbortSignal): Promise<RunningServer> {
  await endLeftover(job.folder, stopSignal)
  const place = await findHome(job.folder)
  const programs = await choosePrograms(job, place)
  await endUnnamedLeftover(place.home)
  return await startOnPort(job.port, async port => {
    await makeData(programs, place, signal)
    return await runOnPort(programs, place, job.folder, port, signal)
  })
}

async function choosePrograms({ prefer, path }: GuardianJob, { home, user }: PostgresHome): Promise<PostgresPrograms> {
  const version = join(home, 'data', 'PG_VERSION')
  const wanted = existsSync(version) ? Number.parseInt(readFileSync(version, 'utf8'), 10) : null
  const native = prefer === 'embedded' ? [] : await findNativePostgres(path)
  const fitting = native.find(({ major }) => major === (wanted ?? major))
  if (fitting) return fitting

  const embedded = await prepareEmbeddedPostgres(findEmbeddedFolder(), home, user)
  if (wanted !== null && embedded.major !== wanted) {
    const remedy = `install PostgreSQL ${wanted}, or remove the folder to start again`
    throw new Error(`${home} was created by PostgreSQL ${wanted}, and only ${embedded.major} is available: ${remedy}`)
  }
  return embedded
}

/**
 * Postgres writes its pid to `postmaster.pid`. A server there without our link was left by a guardian that was killed before it could write
 * the link. A file that is incomplete, or whose pid belongs to another process by now, would keep Postgres from starting.
 */
async function endUnnamedLeftover(home: string): Promise<void> {
  const note = join(home, 'data', 'postmaster.pid')
  if (!existsSync(note)) return
  const pid = Number.parseInt(readFileSync(note, 'utf8'), 10)
  const name = pid > 0 ? nameProcess(pid) : null
  if (name && commandOf(pid).includes(`-D ${join(home, 'data')} `)) await endProcess(name, stopSignal)
  await endSessions(home)
  rmSync(note, { force: true })
}

/** A busy session does not notice that its server was killed, and holds the shared memory of the data while it runs. */
async function endSessions(home: string): Promise<void> {
  await Promise.all(findProcesses(`postgres: ${clusterName(home)}: `).map(session => endProcess(session, 'SIGKILL')))
}

async function runOnPort(
  programs: PostgresPrograms,
  place: PostgresHome,
  folder: string,
  port: number,
  signal: AbortSignal,
): Promise<RunningServer> {
  const server = await spawnPostgres(programs, place, folder, port, signal)
  return {
    url: `postgres://rivulet:${readPassword(place.home)}@127.0.0.1:${port}/rivulet`,
    kind: programs.kind,
    name: `postgres ${programs.version} (${programs.kind === 'native' ? programs.postgres : 'embedded'})`,
    dataFolder: place.home,
    pid: server.pid,
    ended: server.ended,
    stop,
  }

  async function stop(): Promise<void> {
    // Even when the server does not end, because no other process would end its busy sessions.
    await server.stop().finally(() => endSessions(place.home))
  }
}

async function spawnPostgres(
  { postgres }: PostgresPrograms,
  { home, user }: PostgresHome,
  folder: string,
  port: number,
  signal: AbortSignal,
): Promise<ServerProcess> {
  const data = join(home, 'data')
  const settings = {
    cluster_name: clusterName(home),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    timezone: 'UTC',
    log_timezone: 'UTC',
    max_connections: '200',
  }
  const args = ['-D', data, '-p', String(port), ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const server = spawnServer({ folder, file: postgres, args, stopSignal, user: user ?? undefined })
  await waitUntilReady(server, () => isReady(data, server.pid), signal)
  return server
}

/** The first line of `postmaster.pid` is the pid, and the last is the state. */
function isReady(data: string, pid: number): boolean {
  const note = join(data, 'postmaster.pid')
  const lines = existsSync(note) ? readFileSync(note, 'utf8').split('\n') : []
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
}

/** Postgres puts it into the process title of every session. */
function clusterName(home: string): string {
  return `rivulet-${createHash('sha256').update(home).digest('hex').slice(0, 16)}`
}
