/**
 * Gives a data folder to one guardian at a time.
 *
 * A lock is a symbolic link `lock.<n>` whose target names the guardian and its caller. It holds while that guardian lives and is never
 * released, so it ends even when the guardian is killed. Creating a link with its target is atomic. A guardian that finds the last lock dead
 * creates the next number; numbers never repeat, so two guardians that saw the same dead lock cannot both acquire the folder.
 */
import { readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isAlive, nameProcess, type ProcessName, pidOf } from './process-name.ts'

/** How long the guardian of a caller that died may take to end its server. */
const handoverMs = 30_000

export async function lockFolder(folder: string, signal: AbortSignal): Promise<void> {
  const self = `${nameProcess(process.pid)} ${nameProcess(process.ppid) ?? '0@'}`
  const deadline = Date.now() + handoverMs
  for (;;) {
    const last = lastLock(folder)
    if (last > 0 && isHeld(folder, last, deadline)) {
      await delay(25, undefined, { signal })
      continue
    }
    if (!makeLock(folder, last + 1, self)) continue
    if (lastLock(folder) === last + 1) {
      for (const number of lockNumbers(folder)) if (number <= last) rmSync(lockPath(folder, number), { force: true })
      return
    }
    rmSync(lockPath(folder, last + 1), { force: true })
  }
}

/** Throws when waiting is useless, because the lock's caller is alive and uses the folder. */
function isHeld(folder: string, number: number, deadline: number): boolean {
  const [guardian, caller] = readLock(folder, number)
  if (!guardian || !caller || !isAlive(guardian)) return false
  if (isAlive(caller)) throw new Error(`The data folder ${folder} is in use by process ${pidOf(caller)}`)
  if (Date.now() > deadline)
    throw new Error(`The data folder ${folder} is still in use by process ${pidOf(guardian)}, whose caller is gone; end that process`)
  return true
}

function readLock(folder: string, number: number): ProcessName[] {
  try {
    return readlinkSync(lockPath(folder, number)).split(' ') as ProcessName[]
  } catch {
    return []
  }
}

function makeLock(folder: string, number: number, target: string): boolean {
  try {
    symlinkSync(target, lockPath(folder, number))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function lastLock(folder: string): number {
  return Math.max(0, ...lockNumbers(folder))
}

function lockNumbers(folder: string): number[] {
  return readdirSync(folder).flatMap(name => (/^lock\.\d+$/.test(name) ? [Number(name.slice(5))] : []))
}

function lockPath(folder: string, number: number): string {
  return join(folder, `lock.${number}`)
}
