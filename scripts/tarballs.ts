/**
 * `npm run tarballs`: `dist/tarballs` with every public package, as npm would publish it, and the wheel and the sdist of the package for Python. They install
 * from that folder, without a registry that has them.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildCommandLine } from './packages/command-line.ts'
import { buildLibraries, libraries } from './packages/libraries.ts'

const root = fileURLToPath(new URL('../', import.meta.url)).replace(/\/$/, '')
const packages = join(root, 'dist/packages')
const tarballs = join(root, 'dist/tarballs')

const testingTypes = await buildLibraries(root, packages)
await buildCommandLine(root, packages, testingTypes)
rmSync(tarballs, { recursive: true, force: true })
mkdirSync(tarballs, { recursive: true })
for (const name of [...libraries, 'rivulet']) {
  const file = execFileSync('npm', ['pack', '--silent', '--pack-destination', tarballs], {
    cwd: join(packages, name),
    encoding: 'utf8',
  }).trim()
  console.log(`dist/tarballs/${file}`)
}
for (const file of buildForPython()) console.log(`dist/tarballs/${file}`)

function buildForPython(): string[] {
  const script = 'import sys, backend; print(backend.build_wheel(sys.argv[1]), backend.build_sdist(sys.argv[1]))'
  const { status, stdout } = spawnSync('python3', ['-B', '-c', script, tarballs], { cwd: join(root, 'sdks/python'), encoding: 'utf8' })
  if (status === 0) return stdout.trim().split(' ')
  console.log('SKIPPED: the package for Python needs python3 to be built.')
  return []
}
