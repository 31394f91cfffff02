/**
 * Installs the SDKs that our adapters are tested with, in this folder, because together they weigh more than all that the platform needs. Its exit code
 * is 1 where they cannot be installed, which is so without a network.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))

if (!isInstalled()) {
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: here, stdio: 'inherit' })
  if (status !== 0) {
    console.log('SKIPPED: the SDKs could not be installed in test/sdks, so nothing is tested with them.')
    process.exitCode = 1
  }
}

/** npm notes what it installed, as its last act. */
function isInstalled() {
  try {
    const installed = JSON.parse(readFileSync(`${here}node_modules/.package-lock.json`, 'utf8')).packages
    const wanted = Object.entries(JSON.parse(readFileSync(`${here}package-lock.json`, 'utf8')).packages)
    return wanted.every(([path, { version, optional, peer }]) => path === '' || optional || peer || installed[path]?.version === version)
  } catch {
    return false
  }
}
