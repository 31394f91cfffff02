/** A folder is a room that a stranger can take in at a glance. */
import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { filesUnder } from './repository.ts'

const most = 15

test(`no folder has more than ${most} source files`, () => {
  const sources = ['apps', 'packages', 'examples', 'test', 'scripts', 'bench'].flatMap(filesUnder).filter(isSource)
  const counts = new Map<string, number>()
  for (const folder of sources.map(path => dirname(path))) counts.set(folder, (counts.get(folder) ?? 0) + 1)
  expect([...counts].filter(([, count]) => count > most)).toEqual([])
})

function isSource(path: string): boolean {
  return /\.(m?ts|mjs|tsx)$/.test(path) && !path.includes('.test.')
}
