/**
 * A new project: an agent, a test and a README, linked to the packages of this checkout.
 *
 * Every path in it is relative, so it can be committed, and it installs without a network.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from '../platform/programs.ts'

const templates = fileURLToPath(new URL('../../template/', import.meta.url))
const packages = {
  '@rivulet/agent': 'packages/agent',
  rivulet: 'apps/cli',
  '@rivulet/client': 'packages/client',
  '@rivulet/worker': 'packages/worker',
  // The one that schemas of tools are made with.
  zod: 'node_modules/zod',
}

/** Returns the names of the files. Throws, and writes nothing, if the folder is not empty. */
export function createProject(folder: string): string[] {
  const occupant = existsSync(folder) ? readdirSync(folder).find(name => name !== '.git') : undefined
  if (occupant !== undefined) throw new Error(`${folder} is not empty: it has ${occupant}`)
  mkdirSync(folder, { recursive: true })
  const name = nameOf(folder)
  const rivulet = relative(realpathSync(folder), realpathSync(root)).split(sep).join('/')
  const files = new Map([['package.json', `${JSON.stringify(manifestOf(name, rivulet), null, 2)}\n`]])
  for (const template of readdirSync(templates)) {
    const text = readFileSync(join(templates, template), 'utf8')
      .replaceAll('{{name}}', () => name)
      .replaceAll('{{rivulet}}', () => rivulet)
    files.set(template.replace(/\.template$/, '').replace(/^gitignore$/, '.gitignore'), text)
  }
  for (const [file, text] of files) writeFileSync(join(folder, file), text)
  return Array.from(files.keys()).sort()
}

function manifestOf(name: string, rivulet: string): object {
  return {
    name,
    version: '0.0.0',
    private: true,
    type: 'module',
    scripts: { start: 'rivulet dev agents.ts', test: 'node --import rivulet/typescript --test agents.test.ts' },
    dependencies: Object.fromEntries(Object.entries(packages).map(([dependency, path]) => [dependency, `file:${rivulet}/${path}`])),
  }
}

/** What npm takes for a name. */
function nameOf(folder: string): string {
  const plain = basename(resolve(folder))
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replaceAll(/^[._-]+|-+$/g, '')
  return plain || 'agents'
}
