/** This repository as the rules see it: plain values, read once. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Tree, Workspace } from './import-rules.ts'
import type { Source } from './source-facts.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

const entryFiles = new Set(workspaceFolders().flatMap(entryFilesOf))

export interface Manifest {
  name: string
  workspaces?: string[]
  exports?: string | Record<string, unknown>
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

export function readTree(): Tree {
  return {
    // The SDKs of others, and what the bench measures beside us, have an install of their own, which the root does not bring.
    workspaces: [...workspaceFolders(), 'test/sdks', 'bench'].map(readWorkspace),
    rootDependencies: dependenciesOf(readJson<Manifest>('package.json')),
    sources: ['packages', 'apps', 'examples', 'test', 'scripts', 'bench'].flatMap(filesUnder).filter(isOurCode).map(readSource),
  }
}

/** `packages/broker`, `apps/api`, …: the folders that have a package.json. */
export function workspaceFolders(): string[] {
  return ['packages', 'apps'].flatMap(parent => {
    const names = readdirSync(root + parent).sort()
    return names.map(name => `${parent}/${name}`).filter(folder => exists(`${folder}/package.json`))
  })
}

export function filesUnder(folder: string): string[] {
  if (!exists(folder)) return []
  const entries = readdirSync(root + folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  return entries.flatMap(entry => {
    const path = `${folder}/${entry.name}`
    if (!entry.isDirectory()) return [path]
    return entry.name === 'node_modules' || entry.name === 'dist' || entry.name.startsWith('.') ? [] : filesUnder(path)
  })
}

export function exists(path: string): boolean {
  return existsSync(root + path)
}

export function readText(path: string): string {
  return readFileSync(root + path, 'utf8')
}

export function readJson<T>(path: string): T {
  return JSON.parse(readText(path))
}

/** Whether users import from this file: an entry of a package, a folder that an entry exports whole, or an example. */
export function isPublic(path: string): boolean {
  return /^(packages\/(contract|protocol)\/src|test\/(sdks|packages)|examples)\//.test(path) || entryFiles.has(path)
}

function entryFilesOf(folder: string): string[] {
  const { exports = {} } = readJson<Manifest>(`${folder}/package.json`)
  return Array.from(JSON.stringify(exports).matchAll(/"\.\/([^"]+\.tsx?)"/g), ([, file]) => `${folder}/${file}`)
}

function readWorkspace(folder: string): Workspace {
  const manifest = readJson<Manifest>(`${folder}/package.json`)
  return { folder, name: manifest.name, entries: entriesOf(manifest), dependencies: dependenciesOf(manifest) }
}

/** A pattern (`./*`) is no entry: it would open every file. */
function entriesOf({ exports = {} }: Manifest): string[] {
  if (typeof exports === 'string') return ['.']
  const subpaths = Object.keys(exports).filter(key => key.startsWith('.') && !key.includes('*'))
  // Without subpaths the keys are conditions, all of them for the one entry.
  return Object.keys(exports).some(key => key.startsWith('.')) ? subpaths : ['.']
}

function dependenciesOf(manifest: Manifest): string[] {
  const { dependencies, devDependencies, peerDependencies, optionalDependencies } = manifest
  return Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies, ...optionalDependencies })
}

function readSource(path: string): Source {
  return { path, text: readText(path) }
}

/** Code of `test/packages/consumer` is a user's: it imports what is installed into its own folder, and a test type-checks it there. */
function isOurCode(path: string): boolean {
  return /\.[cm]?[jt]sx?$/.test(path) && !path.startsWith('test/packages/consumer/')
}
