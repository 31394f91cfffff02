/**
 * A commit made from an older tree takes the work of others back, and each file of it is well-formed, so no other check fails.
 *
 * The history shows it: the commit gives a file a content that this path already had. A commit that means to do so has "revert" in its
 * subject. A shallow clone is judged by the commits that it has, and a tree without git history is not judged, so CI fetches the whole history.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { readText } from './repository.ts'

/** Commits before it are not judged. */
const since = Date.parse('2026-11-18T00:00:00Z')

const root = fileURLToPath(new URL('../..', import.meta.url))
const history = readHistory(root)
const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true })
})

test.skipIf(history === null)('no commit returns a file to an older content, unless its subject has "revert" (skipped without git)', () => {
  expect(returnsIn(history ?? '')).toEqual([])
})

test('a commit from an older tree is reported with its files, also when it brings back a file that was removed', () => {
  const commit = createRepository()
  commit('feat: first', { 'a.txt': 'one', 'b.txt': 'kept', 'c.txt': 'removed later' })
  commit('feat: second', { 'a.txt': 'two', 'c.txt': null })
  const folder = commit('feat: made from the first', { 'a.txt': 'one', 'b.txt': 'new', 'c.txt': 'removed later' })
  expect(returnsIn(readHistory(folder) ?? '')).toEqual([expect.stringMatching(/^[0-9a-f]+ feat: made from the first: a\.txt, c\.txt$/)])
})

test('a commit that says revert may return a file, and a new content never counts', () => {
  const commit = createRepository()
  commit('feat: first', { 'a.txt': 'one', 'b.txt': 'kept' })
  commit('feat: second', { 'a.txt': 'two' })
  commit('fix: third', { 'a.txt': 'three', 'b.txt': null })
  const folder = commit('revert: the third change of a', { 'a.txt': 'two' })
  expect(readHistory(folder)).toContain('a.txt')
  expect(returnsIn(readHistory(folder) ?? '')).toEqual([])
})

test('a folder without git history is not judged', () => {
  expect(readHistory(emptyFolder())).toBeNull()
})

test('CI fetches the whole history for this check', () => {
  expect(readText('.github/workflows/check.yml')).toMatch(/checkout@\S+ # v[\d.]+\n\s+# .*\n\s+with: { fetch-depth: 0 }[\s\S]*\.ci\/run/)
})

/** The contents of each commit's files, oldest first; null without a git history. */
function readHistory(folder: string): string | null {
  try {
    const order = ['--topo-order', '--reverse', '--no-merges']
    const contents = ['--raw', '--no-abbrev', '--no-renames', '--format=commit %h %ct %s']
    const maxBuffer = 1 << 28
    return execFileSync('git', ['-c', 'core.quotePath=false', 'log', ...order, ...contents], {
      ...{ cwd: folder, encoding: 'utf8', maxBuffer },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  } catch {
    return null
  }
}

/** The commits that return files to an older content, each with its subject and files. */
function returnsIn(log: string): string[] {
  const contents = new Set<string>()
  return log.split(/^commit /m).flatMap(entry => {
    const [head = '', ...lines] = entry.split('\n')
    const [, id, at, subject = ''] = /^(\S+) (\d+) (.*)$/.exec(head) ?? []
    const returned = lines.flatMap(line => {
      const [, before, after, change = '', path = ''] = /^:\d+ \d+ (\w+) (\w+) (\w)\t(.*)$/.exec(line) ?? []
      if (change === '' || change === 'D' || before === after) return []
      const content = `${after} ${path}`
      if (contents.has(content)) return [path]
      contents.add(content)
      return []
    })
    const isJudged = returned.length > 0 && Number(at) * 1000 >= since && !/revert/i.test(subject)
    return isJudged ? [`${id} ${subject}: ${returned.join(', ')}`] : []
  })
}

/** Returns a function that commits files, where null removes one, and returns the folder. */
function createRepository(): (subject: string, files: Record<string, string | null>) => string {
  const folder = emptyFolder()
  // Without the variables by which git, in a hook, names the real repository.
  const env = { PATH: process.env.PATH }
  const git = (...words: string[]) => execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...words], { cwd: folder, env })
  git('init', '--quiet')
  return (subject, files) => {
    for (const [path, text] of Object.entries(files)) {
      if (text === null) rmSync(join(folder, path))
      else writeFileSync(join(folder, path), text)
    }
    git('add', '--all')
    git('commit', '--quiet', '--no-verify', '--no-gpg-sign', '--message', subject)
    return folder
  }
}

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-history-'))
  folders.push(folder)
  return folder
}
