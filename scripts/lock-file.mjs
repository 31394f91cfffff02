/**
 * A lock file for one task of a checkout: of several processes, the holder works and the others wait.
 *
 * The file names the processes that hold it. A lock whose holders are all gone is removed, so a kill leaves nothing to clean up by hand.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

const pollMs = 100
const patienceMs = 600_000

/**
 * Runs `work` while this process holds the lock.
 * @template T
 * @param {string} file
 * @param {string} name what the lock is for: `install`
 * @param {(holdWith: (pid: number) => void) => Promise<T>} work `holdWith` names a child that may outlive this process; the lock is held until both are gone
 * @returns {Promise<T>}
 */
export async function withLockFile(file, name, work) {
  await take(file, name)
  try {
    return await work(pid => writeFileSync(file, `${process.pid} ${pid}`))
  } finally {
    rmSync(file, { force: true })
  }
}

async function take(file, name) {
  mkdirSync(dirname(file), { recursive: true })
  const givesUpAt = Date.now() + patienceMs
  let hasSaidSo = false
  while (!createFile(file)) {
    const holders = readText(file)
    if (holders && !holders.split(' ').some(isAlive) && dropStale(file, holders)) continue
    if (Date.now() > givesUpAt) throw new Error(`Another ${name} did not end. If none is running, remove ${file}*`)
    if (!hasSaidSo) console.log(`Waiting for another ${name} in this checkout.`)
    hasSaidSo = true
    await new Promise(resolve => setTimeout(resolve, pollMs))
  }
}

/**
 * Of all processes that see the same dead holder, one may remove its lock, and only while it is still that one's: otherwise a slow second remover
 * would remove the lock that the first has just taken.
 */
function dropStale(file, holders) {
  const claim = `${file}.${holders.replace(' ', '.')}`
  if (!createFile(claim)) return false
  if (readText(file) === holders) rmSync(file, { force: true })
  rmSync(claim, { force: true })
  return true
}

function createFile(path) {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' })
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

function readText(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') return null
    throw error
  }
}

export function isAlive(pid) {
  try {
    return process.kill(Number(pid), 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}
