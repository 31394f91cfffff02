/** `npm run build`: `dist/api` and `dist/worker`, each with all that it reads. They run wherever there is a Node, and nothing else. */
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildConsole } from '@rivulet/console/page'
import { bundlePrograms, filesOf } from './bundle.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const out = join(root, 'dist')

rmSync(out, { recursive: true, force: true })
await Promise.all([buildConsole(), bundlePrograms({ root, out, files: 'below the bundle' })])
for (const [program, paths] of Object.entries(filesOf)) {
  for (const path of paths) cpSync(join(root, path), join(out, program, path), { recursive: true })
  console.log(`dist/${program} is built: node --enable-source-maps dist/${program}/main.mjs`)
}
