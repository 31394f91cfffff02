/** `npm run migrate`: brings the database up to this version's schema. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openPostgres, type RunOptions } from './engines.ts'
import { programs } from './programs.ts'

export async function migrate(options: RunOptions): Promise<void> {
  const postgres = await openPostgres(options)
  try {
    const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), programs.api, 'migrate'], {
      env: { ...options.environment, DATABASE_URL: postgres.url },
      stdio: 'inherit',
    })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error('The migrations were not applied')
    options.write('the schema is up to date')
  } finally {
    await postgres.stop()
  }
}
