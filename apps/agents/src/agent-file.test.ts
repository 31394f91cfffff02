import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { loadAgents } from './agent-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'rivulet-agent-file-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const agent = (name: string) => `{ name: '${name}', description: '', run: async () => {} }`

test.each([
  ['a default export', `export default ${agent('a')}`, ['a']],
  ['an array', `export default [${agent('a')}, ${agent('b')}]`, ['a', 'b']],
  ['named exports', `export const one = ${agent('a')}\nexport const two = [${agent('b')}]`, ['a', 'b']],
  ['one under two names', `export const one = ${agent('a')}\nexport default one`, ['a']],
  ['an agent beside its helpers', `export const retries = 3\nexport function help() {}\nexport default ${agent('a')}`, ['a']],
])('%s', async (_, code, names) => {
  expect((await loadAgents([write(code)])).map(({ name }) => name)).toEqual(names)
})

test('several files', async () => {
  const files = [write(`export default ${agent('a')}`), write(`export default ${agent('b')}`)]
  expect((await loadAgents(files)).map(({ name }) => name)).toEqual(['a', 'b'])
})

test.each([
  ['nothing', ``, 'exports no agent: write export default defineAgent(…)'],
  ['a function in place of an agent', `export default async () => {}`, 'exports no agent'],
  ['a promise of an agent', `export default Promise.resolve(${agent('a')})`, 'exports no agent'],
  ['an array with a hole in it', `export default [${agent('a')}, undefined]`, 'an item that is not an agent'],
  ['something that throws', `throw new Error('no key')`, 'no key'],
])('%s is refused', async (_, code, reason) => {
  await expect(loadAgents([write(code)])).rejects.toThrow(reason)
})

test('a file that is not there is refused by its name', async () => {
  await expect(loadAgents(['nowhere/agent.ts'])).rejects.toThrow('No such file: nowhere/agent.ts')
})

let written = 0

/** A name of its own for each: modules are loaded once. */
function write(code: string): string {
  const file = join(folder, `agent-${written++}.mjs`)
  writeFileSync(file, code)
  return file
}
