import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Program, programsOf, root } from './programs.ts'

const homes: Record<Program, string> = { api: 'apps/api', worker: 'apps/agents' }
const packages = readdirSync(`${root}packages`).map(name => `packages/${name}`)

test.each(['api', 'worker'] as const)('a change in a package that the %s is made of restarts it, and no other does', program => {
  const restarting = packages.filter(folder => programsOf(`${folder}/src/deep/a.ts`).includes(program))
  expect(restarting.sort()).toEqual(Array.from(packagesOf(homes[program])).sort())
  expect(programsOf(`${homes[program]}/src/main.ts`)).toEqual([program])
})

test('what is no source restarts nothing', () => {
  expect(programsOf('packages/protocol/README.md')).toEqual([])
  expect(programsOf('apps/api/package.json')).toEqual([])
})

/** Those that its package.json names, and those that theirs name. */
function packagesOf(folder: string, found = new Set<string>()): Set<string> {
  const { dependencies = {} } = JSON.parse(readFileSync(`${root}${folder}/package.json`, 'utf8'))
  for (const name of Object.keys(dependencies)) {
    const path = name.replace('@rivulet/', 'packages/')
    if (path === name || found.has(path)) continue
    found.add(path)
    packagesOf(path, found)
  }
  return found
}
