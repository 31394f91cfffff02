/** `rivulet migrate`: migrates the database to this version's schema. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Command } from 'commander'
import { readConfig } from '../../config.ts'
import type { Context } from '../../context.ts'
import { openPostgres } from '../../platform/engines.ts'
import { environmentFor } from '../../platform/program-environment.ts'
import { argumentsOf } from '../../platform/programs.ts'
import { toJsonLine } from '../../terminal/json-line.ts'

export function addMigrateCommand(program: Command, context: Context): void {
  program
    .command('migrate')
    .description("migrate the database to this version's schema")
    .option('--json', 'print the outcome as JSON')
    .action((options: { json?: boolean }) => migrate(context, options))
}

async function migrate({ environment, out, err }: Context, options: { json?: boolean }): Promise<void> {
  // With --json, stdout is one object; progress goes to stderr.
  const aside = options.json ? err : out
  const write = (line: string) => aside.write(`${line}\n`)
  const postgres = await openPostgres({ ...readConfig(environment), environment, write })
  try {
    const child = spawn(process.execPath, argumentsOf('api', ['migrate']), {
      env: environmentFor('api', { ...environment, DATABASE_URL: postgres.url }),
      stdio: ['ignore', options.json ? 2 : 1, 2],
    })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error('The migrations were not applied')
    out.write(options.json ? toJsonLine({ isUpToDate: true }) : 'the schema is up to date\n')
  } finally {
    await postgres.stop()
  }
}
