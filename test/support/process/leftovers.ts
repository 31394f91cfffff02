/** What a run of the tests has left behind: clients of its servers, and processes. Each is described in a line. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import pg from 'pg'

/** Marks every process that a run starts. */
export const runVariable = 'RIVULET_TEST_RUN'

export async function leftoverRedisClients(url: string): Promise<string[]> {
  const client = new Redis(url)
  try {
    const own = await client.client('ID')
    const lines = String(await client.client('LIST'))
      .trim()
      .split('\n')
    // The embedded server is a client of itself; a Sentinel, a replica and its master are clients of each other.
    return lines
      .filter(line => !line.startsWith(`id=${own} `) && !/ name=(rivulet-engines|sentinel-)| flags=[MS]/.test(line))
      .map(line => `Redis client ${line}`)
  } finally {
    client.disconnect()
  }
}

export async function leftoverPostgresClients(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ pid: number; datname: string; query: string }>(
      "SELECT pid, datname, query FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
    )
    return rows.map(({ pid, datname, query }) => `Postgres client ${pid} of ${datname}, last query: ${query.replaceAll(/\s+/g, ' ')}`)
  } finally {
    await client.end()
  }
}

/** The test runner's own workers are children of this process; they end after us. */
export async function leftoverProcesses(run: string): Promise<string[]> {
  const mark = `${runVariable}=${run}`
  const processes = process.platform === 'linux' ? listOnLinux(mark) : listByPs(mark)
  return processes
    .filter(({ pid, parent }) => pid !== process.pid && parent !== process.pid)
    .map(({ pid, command }) => `process ${pid} ${command}`)
}

type MarkedProcess = { pid: number; parent: number; command: string }

function listOnLinux(mark: string): MarkedProcess[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => {
      try {
        if (!readFileSync(`/proc/${name}/environ`, 'utf8').split('\0').includes(mark)) return []
        const parent = Number(readFileSync(`/proc/${name}/status`, 'utf8').match(/^PPid:\s*(\d+)/m)?.[1])
        return [{ pid: Number(name), parent, command: readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() }]
      } catch {
        // It ended meanwhile, or belongs to another run.
        return []
      }
    })
}

function listByPs(mark: string): MarkedProcess[] {
  return execFileSync('ps', ['-AEww', '-o', 'pid=,ppid=,command='], { encoding: 'utf8' })
    .split('\n')
    .filter(line => line.includes(mark))
    .map(line => {
      const [pid, parent, ...command] = line.trim().split(/\s+/)
      return { pid: Number(pid), parent: Number(parent), command: command.join(' ').slice(0, 200) }
    })
}
