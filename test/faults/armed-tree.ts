/**
 * A copy of our sources in which failpoints are calls, and in which a rule can be switched off by changing a line: what is tested here has no
 * switch in the code that runs. A change has to fit in exactly one place, so a source that moves on is noticed.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export type Change = { file: string; find: string | RegExp; replace: string }

export type ArmedTree = { root: string; failpoints: string[]; remove(): void }

const home = fileURLToPath(new URL('../..', import.meta.url))
const programs = ['apps/api/src/main.ts', 'apps/agents/src/main.ts']
const marker = /^( *)\/\/ failpoint: ([a-z ]+?)(?: \((.*)\))?$/gm

export function createArmedTree(changes: readonly Change[] = []): ArmedTree {
  const root = mkdtempSync(join(tmpdir(), 'rivulet-armed-'))
  const failpoints: string[] = []
  const folders = ['apps/api', 'apps/agents', ...readdirSync(join(home, 'packages')).map(name => `packages/${name}`)]
  for (const folder of folders) cpSync(join(home, folder), join(root, folder), { recursive: true, filter: isSource })
  for (const path of sourcesOf(root, folders)) edit(path, arm)
  for (const { file, find, replace } of changes) edit(join(root, file), text => changeOnce(file, text, find, replace))
  writeFileSync(join(root, 'failpoints.ts'), readFileSync(new URL('./failpoints.ts', import.meta.url)))
  for (const program of programs) edit(join(root, program), text => `import '../../../failpoints.ts'\n${text}`)
  for (const name of ['package.json', 'tsconfig.json']) cpSync(join(home, name), join(root, name))
  symlinkSync(join(home, 'migrations'), join(root, 'migrations'))
  linkModules(root, folders)
  return { root, failpoints: failpoints.sort(), remove: () => rmSync(root, { recursive: true, force: true }) }

  function arm(text: string): string {
    return text.replaceAll(marker, (_, indent: string, name: string, values?: string) => {
      failpoints.push(name)
      return `${indent};await globalThis.failpoint('${name}'${values ? `, ${values}` : ''})`
    })
  }
}

function changeOnce(file: string, text: string, find: string | RegExp, replace: string): string {
  const parts = text.split(find)
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} places for this change, not one: ${find}`)
  return parts.join(replace)
}

function isSource(path: string): boolean {
  return !/\/node_modules(\/|$)|\.test\.tsx?$/.test(path)
}

function sourcesOf(root: string, folders: readonly string[]): string[] {
  return folders.flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(path => path.endsWith('.ts'))
      .map(path => join(root, folder, path)),
  )
}

function edit(path: string, change: (text: string) => string): void {
  const text = readFileSync(path, 'utf8')
  const changed = change(text)
  if (changed !== text) writeFileSync(path, changed)
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
