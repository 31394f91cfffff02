/**
 * Installs the SDKs that our adapters are tested with, in this folder, because together they weigh more than all that the platform needs. Its exit code
 * is 1 where those for Node cannot be installed, which is so without a network. Those for Python are installed where there is Python and pip finds them.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))

if (!isInstalled()) {
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: here, stdio: 'inherit' })
  if (status !== 0) {
    console.log('SKIPPED: the SDKs could not be installed in test/sdks, so nothing is tested with them.')
    process.exitCode = 1
  }
}

if (!isInstalledForPython() && !installForPython())
  console.log('SKIPPED: The SDKs for Python could not be installed in test/sdks/.venv, so nothing is tested with those that are missing.')

function isInstalledForPython() {
  const marker = `${here}.venv/installed`
  return existsSync(marker) && readFileSync(marker, 'utf8') === requirements()
}

function requirements() {
  return readFileSync(`${here}requirements.txt`, 'utf8')
}

/** The last act is a file, so that an installation that was broken off is not taken for a whole one. */
function installForPython() {
  const isInstalled =
    run('python3', '-m', 'venv', '.venv') &&
    run(`${here}.venv/bin/pip`, 'install', '--quiet', '--retries', '0', '--timeout', '15', '--requirement', 'requirements.txt')
  if (isInstalled) writeFileSync(`${here}.venv/installed`, requirements())
  return isInstalled
}

function run(program, ...args) {
  return spawnSync(program, args, { cwd: here, stdio: ['ignore', 'ignore', 'ignore'], timeout: 180_000 }).status === 0
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
