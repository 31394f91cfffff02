/** One Redis, one Postgres and the bundled programs for a bench, in a temporary folder. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres, startRedis } from '@rivulet/engines'
import type { World } from './contestant.ts'
import { bundle } from './platform.ts'

export async function startWorld({ isProfiled }: { isProfiled: boolean }): Promise<{ world: World; stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-bench-'))
  // Readable for all, because Postgres runs as another user when this process is root.
  chmodSync(folder, 0o755)
  const profiles = isProfiled ? join(folder, 'profiles') : null
  const options = { dataDir: folder, path: process.env.PATH }
  const [redis, postgres] = await Promise.all([startRedis(options), startPostgres(options), bundle(folder)])
  return {
    world: { redisUrl: redis.url, redisPid: redis.pid, databaseUrl: postgres.url, postgresPid: postgres.pid, folder, profiles },
    async stop() {
      await Promise.all([redis.stop(), postgres.stop()])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
