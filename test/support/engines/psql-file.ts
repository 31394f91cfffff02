/**
 * A file of SQL for psql, run by psql where it is on PATH, else by a reading of our own.
 *
 * That knows only what our files use: `\set ON_ERROR_STOP on`, `\getenv name VARIABLE` and `:'name'`. It refuses every other command of psql.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import pg from 'pg'

export const hasPsql = spawnSync('psql', ['--version']).status === 0

export function runByPsql(file: string, url: string, environment: Record<string, string>): void {
  const { PATH = '' } = process.env
  execFileSync('psql', ['--no-psqlrc', '--quiet', `--file=${file}`, url], { env: { PATH, ...environment }, stdio: 'pipe' })
}

export async function runPsqlFile(file: string, url: string, environment: Record<string, string>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sqlOf(readFileSync(file, 'utf8'), environment))
  } finally {
    await client.end()
  }
}

function sqlOf(text: string, environment: Record<string, string>): string {
  const variables = new Map<string, string>()
  const lines = text.split('\n').filter(line => !line.startsWith('\\') || !obey(line))
  return lines.join('\n').replaceAll(/(?<!:):'(\w+)'/g, (_, name: string) => pg.escapeLiteral(variables.get(name) ?? missing(name)))

  function obey(line: string): boolean {
    const [, name, variable] = /^\\getenv (\w+) (\w+)$/.exec(line) ?? []
    if (name && variable) variables.set(name, environment[variable] ?? missing(variable))
    else if (line !== '\\set ON_ERROR_STOP on') throw new Error(`This is not understood: ${line}`)
    return true
  }
}

function missing(name: string): never {
  throw new Error(`${name} is not set`)
}
