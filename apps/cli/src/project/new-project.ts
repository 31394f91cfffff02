/**
 * A new project, in TypeScript or in Python: an agent, a test, a README, and for TypeScript what runs it in production.
 *
 * Made by the published package, it depends on versions. Made by a checkout, it is linked to the packages of that checkout by relative paths, so it can be
 * committed and installs without a network.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { isCheckout, root } from '../platform/programs.ts'

type Language = 'typescript' | 'python'

const templates: Record<Language, string> = { typescript: `${root}apps/cli/template`, python: `${root}apps/cli/template-python` }

/** Where each dependency lies in a checkout. zod is the one that schemas of tools are made with. */
const dependencies = {
  '@rivulet/agent': 'packages/agent',
  '@rivulet/client': 'packages/client',
  '@rivulet/worker': 'packages/worker',
  zod: 'node_modules/zod',
}
const devDependencies = { '@types/node': 'node_modules/@types/node', rivulet: 'apps/cli', typescript: 'node_modules/typescript' }

/** The same as in a checkout: a project in TypeScript is deployed like the platform itself. */
const deployed = ['docker-compose.yml', 'ops/postgres/roles.sql', 'scripts/make-env.sh', '.env.example']

/** What npm would leave out of a package under its own name. */
const renamed: Record<string, string> = { gitignore: '.gitignore', dockerignore: '.dockerignore' }

/** Returns the names of the files. Throws, and writes nothing, if the folder is not empty. */
export function createProject(folder: string, language: Language = 'typescript'): string[] {
  const occupant = existsSync(folder) ? readdirSync(folder).find(name => name !== '.git') : undefined
  if (occupant !== undefined) throw new Error(`${folder} is not empty: it has ${occupant}`)
  mkdirSync(folder, { recursive: true })
  const name = nameOf(folder)
  const checkout = isCheckout ? relative(realpathSync(folder), realpathSync(root)).split(sep).join('/') : null
  const manifests = language === 'python' ? pythonManifests(name, checkout) : typescriptManifests(name, checkout)
  const files = new Map(Object.entries(manifests).map(([file, content]) => [file, `${JSON.stringify(content, null, 2)}\n`]))
  const copied = language === 'python' ? [] : deployed
  for (const template of readdirSync(templates[language])) {
    const text = readFileSync(join(templates[language], template), 'utf8')
      .replaceAll('{{name}}', () => name)
      .replaceAll('{{package}}', pythonPackage(checkout))
    const file = template.replace(/\.template$/, '')
    files.set(renamed[file] ?? file, text)
  }
  for (const [file, text] of files) writeFileSync(join(folder, file), text)
  for (const file of copied) {
    mkdirSync(join(folder, dirname(file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  return [...files.keys(), ...copied].sort()
}

function typescriptManifests(name: string, checkout: string | null): Record<string, object> {
  const scripts = {
    start: 'rivulet dev agents.ts',
    test: 'node --import rivulet/typescript --test agents.test.ts',
    check: 'tsc',
    build: 'rivulet build agents.ts',
  }
  const needed = { dependencies: specsOf(dependencies, checkout), devDependencies: specsOf(devDependencies, checkout) }
  return { 'package.json': { ...manifestOf(name), scripts, ...needed }, 'tsconfig.json': compilerOptionsFor(checkout) }
}

function pythonManifests(name: string, checkout: string | null): Record<string, object> {
  const scripts = { start: 'rivulet dev agents.py', test: `PYTHONPATH=${pythonPackage(checkout)}/src python3 -m unittest` }
  return { 'package.json': { ...manifestOf(name), scripts, devDependencies: specsOf({ rivulet: 'apps/cli' }, checkout) } }
}

/** Where a project finds the package for Python. Python shortens a path with `..` without following links, so it does not lead through node_modules. */
function pythonPackage(checkout: string | null): string {
  return `${checkout ?? 'node_modules/rivulet'}/sdks/python`
}

function manifestOf(name: string): object {
  return { name, version: '0.0.0', private: true, type: 'module' }
}

function specsOf(paths: Record<string, string>, checkout: string | null): Record<string, string> {
  const versions = checkout === null ? publishedVersions() : {}
  return Object.fromEntries(
    Object.entries(paths).map(([name, path]) => [name, checkout === null ? (versions[name] ?? '*') : `file:${checkout}/${path}`]),
  )
}

/** Our own packages have one version; the package notes which versions of others it was built with. */
function publishedVersions(): Record<string, string> {
  const { version, projectVersions } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    version: string
    projectVersions: Record<string, string>
  }
  const own = [...Object.keys(dependencies), ...Object.keys(devDependencies)].filter(name => /^(@rivulet\/|rivulet$)/.test(name))
  return { ...projectVersions, ...Object.fromEntries(own.map(name => [name, `^${version}`])) }
}

/** Links lead to sources, which are checked by the rules of their own checkout. */
function compilerOptionsFor(checkout: string | null): object {
  const shared = { include: ['*.ts'], exclude: ['node_modules', 'dist'] }
  if (checkout !== null) {
    return { extends: `${checkout}/tsconfig.json`, compilerOptions: { typeRoots: [`${checkout}/node_modules/@types`] }, ...shared }
  }
  const modules = { target: 'ES2023', module: 'NodeNext', moduleResolution: 'NodeNext', verbatimModuleSyntax: true }
  return { compilerOptions: { ...modules, strict: true, noUncheckedIndexedAccess: true, noEmit: true, types: ['node'] }, ...shared }
}

/** What npm takes for a name. */
function nameOf(folder: string): string {
  const plain = basename(resolve(folder))
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replaceAll(/^[._-]+|-+$/g, '')
  return plain || 'agents'
}
