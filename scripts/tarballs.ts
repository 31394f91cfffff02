/** `npm run tarballs`: `dist/tarballs` with every public package, as npm would publish it. They install from that folder, without a registry that has them. */
import { execFileSync } from 'node:child_process'
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
