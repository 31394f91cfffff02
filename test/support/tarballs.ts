/** The packages of a checkout as npm would publish them, installed into a folder without a clone beside it. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './process/typed-commands.ts'

/** Packs every public package by the checkout's own command, which first installs the checkout's dependencies from its lockfile where they are missing. */
export async function packTarballs(checkout: string): Promise<string[]> {
  await run('npm', ['run', '--silent', 'tarballs'], checkout)
  const folder = join(checkout, 'dist/tarballs')
  return readdirSync(folder).map(file => join(folder, file))
}

/** @param packages tarballs, or names with their versions */
export async function installPackages(folder: string, packages: readonly string[], manifest: object = {}): Promise<void> {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module', ...manifest }))
  await run('npm', ['install', '--no-audit', '--no-fund', '--silent', ...packages], folder)
}

/** Packages of others, of the versions that the checkout uses itself. */
export function packagesOf(checkout: string, ...names: string[]): string[] {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'))
  return names.map(name => `${name}@${{ ...dependencies, ...devDependencies }[name]}`)
}
