/** `rivulet migrate`: brings the database up to this version's schema. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import type { Context } from '../context.ts'
import { openPostgres } from '../engines.ts'
import { programs } from '../programs.ts'

export function addMigrateCommand(program: Command, context: Context): void {
  program
    .command('migrate')
    .description("bring the database up to this version's schema")
    .action(() => migrate(context))
}

async function migrate({ environment, out }: Context): Promise<void> {
  const write = (line: string) => out.write(`${line}\n`)
  const postgres = await openPostgres({ ...readConfig(environment), environment, write })
  try {
    const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), programs.api, 'migrate'], {
      env: { ...environment, DATABASE_URL: postgres.url },
      stdio: 'inherit',
    })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error('The migrations were not applied')
    write('the schema is up to date')
  } finally {
    await postgres.stop()
  }
}
