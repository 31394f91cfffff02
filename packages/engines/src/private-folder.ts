/** Folders that no other user of the machine can enter. What is made in them is closed as well, by the umask of the guardian. */
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/** The folders above it are made as the umask has it: they hold nothing but this one. */
export function makePrivateFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return
    if (code !== 'ENOENT') throw error
    mkdirSync(dirname(folder), { recursive: true })
    makePrivateFolder(folder)
  }
}

/** Also one that an earlier version left open. `gid`: of a server that runs as another user than its guardian, and has to enter. */
export function closeFolder(folder: string, gid: number | null): void {
  try {
    if (gid !== null) chownSync(folder, -1, gid)
    chmodSync(folder, gid === null ? 0o700 : 0o710)
  } catch (error) {
    // The folder belongs to another user, or its file system has no modes. The files in it have their own modes.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
  }
}
