/**
 * A copy of our sources for the fault bench, in which a rule can be switched off: the code that runs elsewhere has no switch for it.
 *
 * A change finds its place by the name of a failpoint (TypeScript) or of a rule (Lua), never by the text around it. The name must stand in exactly
 * one place of the tree, so a change whose place is gone fails.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Failpoint } from '@rivulet/runtime/failpoint'
import type { Tree } from '../support/platform/platform-process.ts'

/** `at` inserts code before a failpoint; `rule` replaces the Lua line that ends with `-- rule: NAME`. */
export type Change = { at: Failpoint; insert: string } | { rule: 'fence' | 'gap' | 'duplicate' | 'accept' | 'new entries'; becomes: string }

export type ArmedTree = Tree & { remove(): void }

const home = fileURLToPath(new URL('../..', import.meta.url))

export function createArmedTree(changes: readonly Change[] = []): ArmedTree {
  const root = mkdtempSync(join(tmpdir(), 'rivulet-armed-'))
  const folders = ['apps/api', 'apps/agents', ...readdirSync(join(home, 'packages')).map(name => `packages/${name}`)]
  for (const folder of folders) cpSync(join(home, folder), join(root, folder), { recursive: true, filter: isSource })
  const sources = sourcesOf(root, folders)
  for (const change of changes) apply(change, sources)
  for (const name of ['package.json', 'tsconfig.json']) cpSync(join(home, name), join(root, name))
  symlinkSync(join(home, 'migrations'), join(root, 'migrations'))
  linkModules(root, folders)
  return {
    root,
    failpoints: fileURLToPath(new URL('./failpoints.ts', import.meta.url)),
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}

function apply(change: Change, sources: readonly string[]): void {
  const name = 'at' in change ? change.at : change.rule
  const place = 'at' in change ? new RegExp(`^.*\\bfailpoint\\('${name}'.*$`, 'gm') : new RegExp(`^.*-- rule: ${name}$`, 'gm')
  const texts = sources.map(path => ({ path, text: readFileSync(path, 'utf8') }))
  const found = texts.flatMap(({ path, text }) => Array.from(text.matchAll(place), ([line]) => ({ path, text, line })))
  const [only] = found
  if (!only || found.length > 1) throw new Error(`The tree has ${found.length} places named ${name}, not one`)
  writeFileSync(
    only.path,
    only.text.replace(only.line, () => ('at' in change ? `${change.insert}\n${only.line}` : change.becomes)),
  )
}

function isSource(path: string): boolean {
  return !/\/node_modules(\/|$)|\.test\.tsx?$/.test(path)
}

function sourcesOf(root: string, folders: readonly string[]): string[] {
  return folders.flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(path => /\.(ts|lua)$/.test(path))
      .map(path => join(root, folder, path)),
  )
}

/** What is installed is shared; our own packages are those of the copy. */
function linkModules(root: string, folders: readonly string[]): void {
  const modules = join(root, 'node_modules')
  mkdirSync(join(modules, '@rivulet'), { recursive: true })
  for (const name of readdirSync(join(home, 'node_modules'))) {
    if (name !== '@rivulet') symlinkSync(join(home, 'node_modules', name), join(modules, name))
  }
  for (const folder of folders) symlinkSync(join(root, folder), join(modules, '@rivulet', folder.split('/')[1] ?? ''))
}
