/**
 * Installs the other projects into this folder, and only when `--peers` is given, because together they are larger than everything that the
 * platform needs. When the install fails (no network), the bench continues without them.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))

/** Returns whether they are installed. */
export function installPeers(): boolean {
  if (isInstalled()) return true
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: here, stdio: ['ignore', 2, 2] })
  if (status !== 0) console.error('The other projects could not be installed into bench/ and are left out.')
  return status === 0
}

type Packages = Record<string, { version?: string; optional?: boolean; peer?: boolean }>

/** npm writes this lock file as the last step of an install. */
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
