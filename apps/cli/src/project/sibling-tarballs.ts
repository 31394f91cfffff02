/**
 * Rivulet's packages as files, where the command itself was installed from one: then a new project gets the same files, and no registry needs to have them.
 * Its package.json names versions all the same.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** Arguments of `npm install`; none if the project in this folder has `rivulet` from a registry, or not at all. */
export function siblingTarballs(folder: string): string[] {
  const own = specIn(join(folder, 'package.json'))
  if (!own?.startsWith('file:') || !own.endsWith('.tgz')) return []
  const tarballs = dirname(resolve(folder, own.slice('file:'.length)))
  const found = readdirSync(tarballs).filter(file => /^rivulet-.*\.tgz$/.test(file))
  return ['--no-save', ...found.map(file => join(tarballs, file))]
}

function specIn(manifest: string): string | undefined {
  try {
    const { dependencies = {}, devDependencies = {} } = JSON.parse(readFileSync(manifest, 'utf8')) as Record<string, Record<string, string>>
    return devDependencies.rivulet ?? dependencies.rivulet
  } catch {
    return undefined
  }
}
