import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { watchSources } from './source-watch.ts'

const others = ['node_modules', 'dist', '.venv', 'env/lib', '__pycache__', 'lib/site-packages']

let folder: string
let heard: string[]
let stop: () => void
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rivulet-watch-'))
  for (const name of ['lib', ...others]) mkdirSync(join(folder, name), { recursive: true })
  writeFileSync(join(folder, 'env/pyvenv.cfg'), '')
  heard = []
  stop = watchSources([folder], files => void heard.push(...files))
})
afterEach(() => {
  stop()
  rmSync(folder, { recursive: true })
})

test('a change in a subfolder is reported; installed packages, virtual environments, tests and other files are not', async () => {
  const ignored = [...others.flatMap(other => [`${other}/a.ts`, `${other}/a.py`]), 'a.test.ts', 'notes.md']
  for (const name of [...ignored, 'lib/agent.ts']) writeFileSync(join(folder, name), '')
  await vi.waitFor(() => expect(heard.some(file => file.endsWith('lib/agent.ts'))).toBe(true), 300_000)
  expect(heard.filter(file => !file.endsWith('lib/agent.ts'))).toEqual([])
})

test('a folder that came later is watched as well', async () => {
  mkdirSync(join(folder, 'new'))
  writeFileSync(join(folder, 'first.ts'), '')
  await vi.waitFor(() => expect(heard.length).toBeGreaterThan(0), 300_000)
  writeFileSync(join(folder, 'new/second.ts'), '')
  await vi.waitFor(() => expect(heard.some(file => file.endsWith('new/second.ts'))).toBe(true), 300_000)
})
