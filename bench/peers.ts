/**
 * What others build is installed here, in a folder of its own, and only when it is asked for: together it weighs more than all that the platform
 * needs. Where it cannot be had (no network), the bench goes on without.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))

/** Whether they are there. */
export function installPeers(): boolean {
  if (isInstalled()) return true
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: here, stdio: ['ignore', 2, 2] })
  if (status !== 0) console.error('The peers could not be installed in bench/: they are left out.')
  return status === 0
}

type Packages = Record<string, { version?: string; optional?: boolean; peer?: boolean }>

/** npm notes what it installed, as its last act. */
function isInstalled(): boolean {
  try {
    const installed = read('node_modules/.package-lock.json')
    return Object.entries(read('package-lock.json')).every(
      ([path, { version, optional, peer }]) => path === '' || optional || peer || installed[path]?.version === version,
    )
  } catch {
    return false
  }
}

function read(file: string): Packages {
  return (JSON.parse(readFileSync(`${here}${file}`, 'utf8')) as { packages: Packages }).packages
}
