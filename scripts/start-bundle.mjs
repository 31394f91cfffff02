/**
 * The programs of this checkout as bundles, for `npm start`: in `dist/start/<digest of the sources>`, built when that folder is missing.
 *
 * A folder is complete as soon as it has its name. Folders of other sources are removed, except while a platform runs from one, because that
 * platform starts its programs again from there.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { digestOf } from './digest.mjs'
import { isAlive, withLockFile } from './lock-file.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const home = join(root, 'dist/start')
/** Dependencies count by the lock file, with which `scripts/install.mjs` has compared what is installed. */
const sources = ['apps', 'packages', 'scripts', 'migrations', 'package.json', 'package-lock.json']

/** Returns the file of the command line in the bundle. The bundle is kept while this process lives. */
export async function openStartBundle() {
  const digest = digestOf(root, sources).slice(0, 16)
  const bundle = join(home, digest)
  if (!existsSync(bundle)) await withLockFile(join(home, 'build.lock'), 'build', holdWith => build(bundle, holdWith))
  const users = join(bundle, 'used-by')
  mkdirSync(users, { recursive: true })
  const mark = join(users, String(process.pid))
  writeFileSync(mark, '')
  process.once('exit', () => rmSync(mark, { force: true }))
  return join(bundle, 'dist/cli.mjs')
}

async function build(bundle, holdWith) {
  // The process that held the lock before us may have built it.
  if (existsSync(bundle)) return
  const startedAt = performance.now()
  for (const name of readdirSync(home)) if (!name.includes('.lock') && !isUsed(name)) rmSync(join(home, name), { recursive: true })
  const unfinished = `${bundle}.unfinished`
  const builder = spawn(process.execPath, ['--import', 'tsx', 'scripts/build-programs.ts', unfinished], {
    ...{ cwd: root, stdio: ['ignore', 'ignore', 'inherit'] },
  })
  // It outlives us when only we are killed.
  if (builder.pid) holdWith(builder.pid)
  const [code] = await once(builder, 'exit')
  if (code !== 0) throw new Error('The programs could not be built, for the reason above')
  renameSync(unfinished, bundle)
  console.log(`programs built in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
}

function isUsed(name) {
  const users = join(home, name, 'used-by')
  return existsSync(users) && readdirSync(users).some(isAlive)
}
