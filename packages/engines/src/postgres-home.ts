/**
 * Whom Postgres runs as, and where its data lives.
 *
 * Postgres refuses to run as root. Started by root it runs as whoever owns the data, at first nobody; where that user cannot enter the data
 * folder (a checkout below /root, say), its home is a folder elsewhere that the data folder points to with a link. Removing the data folder
 * forgets that home, as it forgets everything else.
 */
import { execFile } from 'node:child_process'
import { chmodSync, lstatSync, mkdtempSync, readlinkSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export type ServerUser = { uid: number; gid: number }
export type PostgresHome = { home: string; user: ServerUser | null }

const nobody: ServerUser = { uid: 65534, gid: 65534 }

export async function findHome(folder: string): Promise<PostgresHome> {
  if (process.getuid?.() !== 0) return { home: folder, user: null }
  const home = linkedHome(folder) ?? folder
  const user = ownerOf(join(home, 'data')) ?? nobody
  if (home !== folder || (await canEnter(folder, user))) return { home, user }
  return { home: await makeHome(folder, user), user }
}

/** A link to a folder that is gone, or that somebody else has made since, leads nowhere. */
function linkedHome(folder: string): string | null {
  try {
    const home = readlinkSync(join(folder, 'home'))
    const found = lstatSync(home)
    return found.isDirectory() && found.uid === process.getuid?.() ? home : null
  } catch {
    return null
  }
}

async function makeHome(folder: string, user: ServerUser): Promise<string> {
  // /var/tmp first: it outlives a restart of the machine.
  for (const base of ['/var/tmp', tmpdir(), '/tmp']) {
    if (!(await canEnter(base, user))) continue
    const home = mkdtempSync(join(base, 'rivulet-'))
    chmodSync(home, 0o755)
    rmSync(join(folder, 'home'), { force: true })
    symlinkSync(home, join(folder, 'home'))
    return home
  }
  throw new Error(`Postgres does not run as root, and user ${user.uid} can enter neither ${folder} nor /var/tmp: run as another user`)
}

function ownerOf(data: string): ServerUser | null {
  const { uid, gid } = statSync(data, { throwIfNoEntry: false }) ?? { uid: 0, gid: 0 }
  return uid === 0 ? null : { uid, gid }
}

async function canEnter(folder: string, user: ServerUser): Promise<boolean> {
  return await promisify(execFile)('/bin/sh', ['-c', 'cd "$1"', 'sh', folder], { cwd: '/', ...user }).then(
    () => true,
    () => false,
  )
}
