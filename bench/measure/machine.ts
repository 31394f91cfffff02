/** Describes the machine on which the figures were measured. */
import { arch, cpus, loadavg, platform, totalmem } from 'node:os'
import { Redis } from 'ioredis'
import pg from 'pg'
import type { World } from '../contestant.ts'

export async function describeMachine({ redisUrl, databaseUrl }: World): Promise<string> {
  const processors = cpus()
  const model = processors[0]?.model.trim() ?? 'unknown'
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`
  const [redis, postgres] = await Promise.all([redisVersion(redisUrl), postgresVersion(databaseUrl)])
  const load = loadavg()[0]?.toFixed(1)
  return [
    `${new Date().toISOString().slice(0, 10)}, ${platform()} ${arch()}, ${processors.length} × ${model}, ${memory}`,
    `Node ${process.versions.node}, ${redis}, PostgreSQL ${postgres}`,
    `load average when it began: ${load}`,
  ].join(';\n')
}

async function redisVersion(url: string): Promise<string> {
  const redis = new Redis(url)
  const info = await redis.info('server')
  redis.disconnect()
  const valkey = /valkey_version:(\S+)/.exec(info)?.[1]
  return valkey ? `Valkey ${valkey}` : `Redis ${/redis_version:(\S+)/.exec(info)?.[1]}`
}

async function postgresVersion(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ server_version: string }>('show server_version')
  await client.end()
  return rows[0]?.server_version ?? ''
}
