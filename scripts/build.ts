/** `npm run build`: `dist/api` and `dist/worker`, each with all that it reads. They run wherever there is a Node, and nothing else. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleFiles } from './bundle.ts'
import { buildPrograms } from './packages/command-line.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const out = join(root, 'dist')

for (const program of ['api', 'worker']) rmSync(join(out, program), { recursive: true, force: true })
await buildPrograms(root, join(out, 'api'))
await bundleFiles({
  ...{ root, out: join(out, 'worker'), base: 'bundleUrl', external: [] },
  entries: { main: 'apps/agents/src/main.ts' },
})
for (const program of ['api', 'worker']) console.log(`dist/${program} is built: node --enable-source-maps dist/${program}/main.mjs`)
