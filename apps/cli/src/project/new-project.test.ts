import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { root } from '../platform/programs.ts'
import { createProject } from './new-project.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rivulet-init-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('a project has an agent, a test, a README, its commands, and what deploys it', () => {
  const files = createProject(join(folder, 'deep', 'My Agents!'))
  expect(files).toEqual([
    ...['.dockerignore', '.env.example', '.gitignore', 'Dockerfile', 'README.md', 'agents.test.ts', 'agents.ts'],
    ...['docker-compose.yml', 'ops/postgres/roles.sql', 'package.json', 'scripts/make-env.sh', 'tsconfig.json'],
  ])
  const manifest = JSON.parse(readFileSync(join(folder, 'deep/My Agents!/package.json'), 'utf8'))
  expect(manifest.name).toBe('my-agents')
  expect(Object.keys(manifest.scripts)).toEqual(['start', 'test', 'check', 'build'])
})

test('its dependencies are links to this checkout, and no file knows where on the machine it lies', () => {
  const createdFiles = createProject(folder)
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  for (const [name, link] of Object.entries<string>({ ...manifest.dependencies, ...manifest.devDependencies })) {
    expect(link).toMatch(/^file:\.\.\//)
    expect(JSON.parse(readFileSync(resolve(folder, link.slice('file:'.length), 'package.json'), 'utf8')).name).toBe(name)
  }
  for (const file of createdFiles) {
    const text = readFileSync(join(folder, file), 'utf8')
    expect(text).not.toContain('{{')
    expect(text).not.toMatch(new RegExp(`(?<![./\\w])${root.slice(0, -1)}`))
  }
})

test('a project in Python has an agent, a test and a README, and finds the package', () => {
  const files = createProject(folder, 'python')
  expect(files).toEqual(['.gitignore', 'README.md', 'agents.py', 'package.json', 'test_agents.py'])
  const { scripts, devDependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  expect(scripts.start).toBe('rivulet dev agents.py')
  expect(Object.keys(devDependencies)).toEqual(['rivulet'])
  const [, place = ''] = /PYTHONPATH=(\S+)/.exec(scripts.test) ?? []
  expect(existsSync(join(folder, place, 'rivulet/__init__.py'))).toBe(true)
  for (const file of files) expect(readFileSync(join(folder, file), 'utf8')).not.toContain('{{')
})

test('a folder that holds something is refused, and left as it was', () => {
  writeFileSync(join(folder, 'precious.txt'), 'mine')
  expect(() => createProject(folder)).toThrow('is not empty: it has precious.txt')
  expect(readdirSync(folder)).toEqual(['precious.txt'])
})

test('a fresh repository is as good as empty', () => {
  mkdirSync(join(folder, '.git'))
  expect(createProject(folder)).toContain('agents.ts')
})
