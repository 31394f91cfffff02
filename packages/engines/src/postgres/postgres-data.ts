/**
 * Creates a Postgres data folder with a database named `rivulet` and a random password.
 *
 * It is created under another name and then renamed, so that a kill in between leaves no incomplete data folder.
 */
import { execFile } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { serverEnvironment } from '../guardian/running-server.ts'
import { drawPassword, passwordFile } from '../password.ts'
import type { PostgresHome, ServerUser } from './postgres-home.ts'
import type { PostgresPrograms } from './postgres-programs.ts'

/** Does nothing when the folder already has data. */
export async function makeData({ initdb, postgres }: PostgresPrograms, { home, user }: PostgresHome, signal: AbortSignal): Promise<void> {
  const data = join(home, 'data')
  if (existsSync(data)) return
  const unfinished = join(home, 'data.new')
  const password = passwordFile(home)
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { mode: 0o700 })
  drawPassword(home)
  if (user) for (const path of [unfinished, password]) chownSync(path, user.uid, user.gid)

  const access = ['--username=rivulet', '--auth=scram-sha-256', `--pwfile=${password}`]
  // Not synced, because syncing takes longer than the rest and only protects an empty database against a power cut in its first half minute.
  await run(initdb, ['--no-sync', '-D', unfinished, ...access, '--encoding=UTF8', '--locale=C'], '', user, signal)
  await run(postgres, ['--single', '-F', '-D', unfinished, 'postgres'], 'CREATE DATABASE rivulet\n', user, signal)
  renameSync(unfinished, data)
}

async function run(file: string, args: string[], input: string, user: ServerUser | null, signal: AbortSignal): Promise<void> {
  const running = promisify(execFile)(file, args, { cwd: '/', env: serverEnvironment, signal, ...user })
  running.child.stdin?.end(input)
  await running.catch(error => {
    const output = String(error.stderr || error.message).trim()
    throw new Error(`${file} failed: ${output.split('\n').at(-1)}`, { cause: error })
  })
}
