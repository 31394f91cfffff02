/** A digest of source files, by which a build notes what it was made of. Names and content count, not file times, because git sets those anew. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** What lies among sources and is part of no build. */
const ignored = /^(node_modules|dist|test)$|\.test\.tsx?$|\.md$/

/**
 * @param {string} root
 * @param {readonly string[]} paths files and folders, from the root
 * @returns {string}
 */
export function digestOf(root, paths) {
  const hash = createHash('sha256')
  const files = paths.flatMap(path => (statSync(join(root, path)).isDirectory() ? filesIn(root, path) : [path]))
  for (const file of files.sort()) hash.update(`${file}\0`).update(readFileSync(join(root, file)))
  return hash.digest('hex')
}

function filesIn(root, folder) {
  const entries = readdirSync(join(root, folder), { withFileTypes: true }).filter(({ name }) => !ignored.test(name))
  return entries.flatMap(entry => (entry.isDirectory() ? filesIn(root, join(folder, entry.name)) : [join(folder, entry.name)]))
}
