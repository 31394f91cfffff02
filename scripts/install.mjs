/**
 * Runs before every npm script, so that a fresh clone, or a pull that changed the lock, needs no step of its own.
 *
 * What counts is content: npm notes in node_modules/.package-lock.json what it installed, as its last act, and that must agree with
 * package-lock.json. File times say nothing (git sets them anew). When all is in order this is silent and starts no process.
 * Several of these may run at once: only the holder of the lock file installs, the others wait and then look again.
 */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { withLockFile } from './lock-file.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
// Not inside node_modules, which `npm ci` empties.
const lockFile = `${root}.rivulet/install.lock`

refuseOldNode(readJson('package.json').engines.node)
if (existsSync(lockFile) || whyInstall()) await installAlone()

function refuseOldNode(wanted) {
  const needed = wanted
    .match(/^>=([\d.]+)$/)[1]
    .split('.')
    .map(Number)
  const actual = process.versions.node.split('.').map(Number)
  const at = needed.findIndex((part, index) => part !== actual[index])
  if (at < 0 || actual[at] > needed[at]) return
  fail(`Rivulet needs Node ${wanted}, and this is Node ${process.versions.node}.`)
}

/** The first thing that node_modules lacks, or null. Optional packages are left to npm: most are for other platforms. */
function whyInstall() {
  const installed = readJson('node_modules/.package-lock.json')?.packages
  if (!installed) return 'nothing is installed yet'
  for (const [path, wanted] of Object.entries(readJson('package-lock.json').packages)) {
    if (path === '') continue
    const found = installed[path]
    if (!found && !wanted.optional) return `${path} is not installed`
    if (!found) continue
    const isSame = found.version === wanted.version && found.integrity === wanted.integrity && found.link === wanted.link
    if (!isSame) return `${path} is not the one in package-lock.json`
  }
  return null
}

async function installAlone() {
  await withLockFile(lockFile, 'install', async holdWith => {
    // The process that held the lock before us may have installed already.
    const reason = whyInstall()
    if (reason) await npmCi(reason, holdWith)
  }).catch(error => fail(error.message))
}

async function npmCi(reason, holdWith) {
  const { spawn } = await import('node:child_process')
  console.log(`Running npm ci: ${reason}.`)
  // Everything, also where NODE_ENV or a setting would leave a part out: we would miss that part again at every start.
  const npm = spawn('npm', ['ci', '--include=dev', '--include=optional'], { cwd: root, stdio: 'inherit' })
  // npm outlives us when only we are killed.
  if (npm.pid) holdWith(npm.pid)
  const code = await new Promise(resolve => npm.on('error', resolve).on('exit', resolve))
  if (code !== 0) process.exitCode = 1
  if (code instanceof Error) console.error(`npm could not be started: ${code.message}`)
}

function readText(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') return null
    throw error
  }
}

function readJson(path) {
  const text = readText(root + path)
  return text && JSON.parse(text)
}

function fail(message) {
  console.error(message)
  process.exit(1)
}
