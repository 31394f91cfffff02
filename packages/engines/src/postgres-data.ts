/**
 * A new Postgres data folder with a database named `rivulet`, and the password that was drawn for it.
 *
 * Made beside its place and moved there whole, so that a kill in between leaves nothing that looks like data.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { PostgresHome, ServerUser } from './postgres-home.ts'
import type { PostgresPrograms } from './postgres-programs.ts'
import { serverEnvironment } from './running-server.ts'

/** Does nothing when there is data. */
export async function makeData({ initdb, postgres }: PostgresPrograms, { home, user }: PostgresHome, signal: AbortSignal): Promise<void> {
  const data = join(home, 'data')
  if (existsSync(data)) return
  const unfinished = join(home, 'data.new')
  const password = passwordFile(home)
  rmSync(unfinished, { recursive: true, force: true })
  rmSync(password, { force: true })
  mkdirSync(unfinished, { mode: 0o700 })
  writeFileSync(password, randomBytes(18).toString('hex'), { mode: 0o600 })
  if (user) for (const path of [unfinished, password]) chownSync(path, user.uid, user.gid)

  const access = ['--username=rivulet', '--auth=scram-sha-256', `--pwfile=${password}`]
  // Not synced: that takes longer than all the rest, and guards an empty database against a power cut in its first half minute.
  await run(initdb, ['--no-sync', '-D', unfinished, ...access, '--encoding=UTF8', '--locale=C'], '', user, signal)
  await run(postgres, ['--single', '-F', '-D', unfinished, 'postgres'], 'CREATE DATABASE rivulet\n', user, signal)
  renameSync(unfinished, data)
}

export function readPassword(home: string): string {
  return readFileSync(passwordFile(home), 'utf8')
}

function passwordFile(home: string): string {
  return join(home, 'password')
}

async function run(file: string, args: string[], input: string, user: ServerUser | null, signal: AbortSignal): Promise<void> {
  const running = promisify(execFile)(file, args, { cwd: '/', env: serverEnvironment, signal, ...user })
  running.child.stdin?.end(input)
  await running.catch(error => {
    const words = String(error.stderr || error.message).trim()
    throw new Error(`${file} failed: ${words.split('\n').at(-1)}`, { cause: error })
  })
}
