/**
 * Tests our adapters with the SDKs they are for. Those are installed here, in a folder of their own: together they weigh more than all that the
 * platform needs. Where they cannot be had (no network), the tests are skipped, and the last line says so.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const root = fileURLToPath(new URL('../..', import.meta.url))

if (isInstalled() || (await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], here)) === 0) {
  const steps = [
    ['tsc', '-p', 'test/sdks'],
    ['vitest', 'run', '--project', 'sdks', ...process.argv.slice(2)],
  ]
  for (const [program, ...args] of steps)
    if (process.exitCode !== 1) process.exitCode = await run(`${root}node_modules/.bin/${program}`, args, root)
} else {
  console.log('SKIPPED: the SDKs could not be installed in test/sdks, so nothing was tested with them.')
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

function run(program, args, cwd) {
  const child = spawn(program, args, { cwd, stdio: 'inherit' })
  return new Promise(resolve => child.on('error', () => resolve(1)).on('exit', code => resolve(code === 0 ? 0 : 1)))
}
