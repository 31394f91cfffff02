/**
 * The user that Postgres runs as, and the folder of its data.
 *
 * Postgres refuses to run as root. Started by root, it runs as the owner of the data; for new data that is user 65534. Where that user cannot
 * enter the data folder (for example a checkout below /root), its home is another folder, and the data folder has a link to it. Removing the
 * data folder removes that link, too.
 */
import { execFile } from 'node:child_process'
import { lstatSync, mkdtempSync, readlinkSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { closeFolder } from '../private-folder.ts'

export type ServerUser = { uid: number; gid: number }
export type PostgresHome = { home: string; user: ServerUser | null }

const unprivileged: ServerUser = { uid: 65534, gid: 65534 }

export async function findHome(folder: string): Promise<PostgresHome> {
  closeFolder(folder, null)
  if (process.getuid?.() !== 0) return { home: folder, user: null }
  const home = linkedHome(folder) ?? folder
  const user = ownerOf(join(home, 'data')) ?? unprivileged
  closeFolder(home, user.gid)
  if (home !== folder || (await canEnter(folder, user))) return { home, user }
  closeFolder(folder, null)
  return { home: await makeHome(folder, user), user }
}

/** Null when the link's folder is gone, or belongs to another user by now. */
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
  // /var/tmp first, because it survives a restart of the machine.
  for (const base of ['/var/tmp', tmpdir(), '/tmp']) {
    if (!(await canEnter(base, user))) continue
    const home = mkdtempSync(join(base, 'rivulet-'))
    closeFolder(home, user.gid)
    rmSync(join(folder, 'home'), { force: true })
    symlinkSync(home, join(folder, 'home'))
    return home
  }
  throw new Error(`Postgres does not run as root, and user ${user.uid} can enter neither ${folder} nor /var/tmp: start as another user`)
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
