/**
 * The password of a server: drawn once for its data folder, and kept there in a file that only its owner can read.
 *
 * It is never an argument of a command, because every user of the machine can list those.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makePrivateFolder } from './private-folder.ts'

/** Hex: it needs no quotes, neither in a URL nor in a file of settings. */
const form = /^[0-9a-f]{36}$/

/** Replaces the one before. */
export function drawPassword(folder: string): string {
  const password = randomBytes(18).toString('hex')
  rmSync(passwordFile(folder), { force: true })
  writeFileSync(passwordFile(folder), password, { mode: 0o600, flag: 'wx' })
  return password
}

export function readPassword(folder: string): string {
  return readFileSync(passwordFile(folder), 'utf8')
}

/** Reads the password of the folder, or draws one where the file is missing or was left half written. Only for servers that get it with each start. */
export function keepPassword(folder: string): string {
  const kept = existsSync(passwordFile(folder)) ? readPassword(folder) : ''
  return form.test(kept) ? kept : drawPassword(folder)
}

/** The key that encrypts the secrets of tasks in the database of this folder. It stays beside that database. */
export function keepSecretsKey(dataDir: string): string {
  const folder = join(dataDir, 'secrets')
  makePrivateFolder(folder)
  return keepPassword(folder)
}

export function passwordFile(folder: string): string {
  return join(folder, 'password')
}
