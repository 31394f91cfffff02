/**
 * Reports changed sources, after a short delay because an editor's save is often several changes. Installed packages, Python's virtual environments and
 * caches, and hidden folders are not watched.
 */
import { existsSync, type FSWatcher, readdirSync, watch } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { root } from './programs.ts'

const settleMs = 200

/** Returns a function that stops the watch. File names are relative to the repository's root. */
export function watchSources(folders: readonly string[], onChange: (files: string[]) => void): () => void {
  const watchers = new Map<string, FSWatcher>()
  let touched: string[] = []
  let soon: NodeJS.Timeout | undefined
  for (const folder of folders) watchTree(folder)
  return stop

  function watchTree(folder: string): void {
    try {
      if (!watchers.has(folder)) watchers.set(folder, watchFolder(folder))
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        if (entry.isDirectory() && hasSources(join(folder, entry.name))) watchTree(join(folder, entry.name))
      }
    } catch {
      // Gone, or closed to us.
      watchers.get(folder)?.close()
      watchers.delete(folder)
    }
  }

  function watchFolder(folder: string): FSWatcher {
    return watch(folder, (_, name) => name && look(folder, name)).on('error', () => {})
  }

  function look(folder: string, name: string): void {
    if (!/\.([cm]?[jt]sx?|py|lua|json)$/.test(name) || name.includes('.test.')) return
    touched.push(relative(root, join(folder, name)))
    clearTimeout(soon)
    soon = setTimeout(tell, settleMs)
  }

  function tell(): void {
    const files = touched
    touched = []
    for (const folder of folders) watchTree(folder)
    onChange(files)
  }

  function stop(): void {
    clearTimeout(soon)
    for (const watcher of watchers.values()) watcher.close()
  }
}

/** A virtual environment of Python can have any name, and has this file. */
function hasSources(folder: string): boolean {
  return !/^(\..*|node_modules|dist|__pycache__|site-packages)$/.test(basename(folder)) && !existsSync(join(folder, 'pyvenv.cfg'))
}

/** The folders that these files lie in. */
export function foldersOf(files: readonly string[]): string[] {
  return Array.from(new Set(files.map(file => dirname(resolve(file)))))
}
