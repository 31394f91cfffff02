/**
 * The public packages as a user gets them: packed, installed from their tarballs into an empty folder without a clone beside it.
 *
 * The dependencies of the packages come from the registry, so this needs one. It is not part of `npm test`: `npm run test:packages`.
 */
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { run } from '../support/process/typed-commands.ts'
import { installPackages, packagesOf } from '../support/tarballs.ts'

const checkout = fileURLToPath(new URL('../../', import.meta.url))
const folder = inject('consumer')
const names = ['protocol', 'contract', 'runtime', 'broker', 'client', 'worker', 'agent', 'views'].map(name => `@rivulet/${name}`)

describe('the tarballs', () => {
  test.each([...names, 'rivulet'])('%s has a license, a repository, a README, and nothing but what it needs', name => {
    const home = join(folder, 'node_modules', name)
    const manifest = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
    expect(manifest).toMatchObject({ license: 'MIT', repository: { type: 'git' }, engines: { node: expect.any(String) }, version: '0.2.0' })
    for (const file of ['README.md', 'LICENSE']) expect(existsSync(join(home, file)), file).toBe(true)
    for (const range of Object.values<string>(manifest.dependencies)) expect(range).toMatch(/^[\^>]/)
    expect(filesUnder(home).filter(file => /(?<!\.d)\.ts$|\.test\./.test(file) && !file.includes('template'))).toEqual([])
  })

  test('there is one copy of each package', () => {
    const manifest = /(?:^|node_modules\/)(@rivulet\/[a-z]+|react|zod)\/package\.json$/
    const copies = filesUnder(join(folder, 'node_modules')).flatMap(file => manifest.exec(file)?.[1] ?? [])
    expect(copies.sort()).toEqual([...names, 'react', 'zod'].sort())
  })
})

test.each([
  ['nodenext', { module: 'nodenext', moduleResolution: 'nodenext' }],
  ['bundler', { module: 'esnext', moduleResolution: 'bundler' }],
])('a strict consumer type-checks under %s, declarations of libraries included', async (_, modules) => {
  const compilerOptions = {
    ...modules,
    target: 'es2023',
    lib: ['es2023', 'dom'],
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    jsx: 'react-jsx',
  }
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { ...compilerOptions, types: ['node'] }, include: ['*.ts', 'page/*.tsx'] }),
  )
  expect(await run('npx', ['tsc'], folder)).toBe('')
})

test('the worker has all its types where no other package is installed', async () => {
  const alone = mkdtempSync(join(tmpdir(), 'rivulet-worker-'))
  onTestFinished(() => rmSync(alone, { recursive: true, force: true }))
  const needed = inject('tarballs').filter(file => /rivulet-(protocol|contract|runtime|broker|agent|worker)-/.test(file))
  expect(needed).toHaveLength(6)
  await installPackages(alone, [...needed, ...packagesOf(checkout, 'typescript', '@types/node')])
  cpSync(fileURLToPath(new URL('./alone/types.ts', import.meta.url)), join(alone, 'types.ts'))
  const compilerOptions = { module: 'nodenext', target: 'es2023', strict: true, noEmit: true, skipLibCheck: true, types: ['node'] }
  writeFileSync(join(alone, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  expect(await run('npx', ['tsc'], alone)).toBe('')
})

test('the browser client is at most 20 kB of gzip, and has no validation library', async () => {
  const stdin = { contents: "export * from '@rivulet/client'; export * from '@rivulet/client/react'", resolveDir: folder }
  const { outputFiles, metafile } = await build({
    stdin,
    bundle: true,
    minify: true,
    format: 'esm',
    write: false,
    metafile: true,
    external: ['react'],
  })
  expect(
    Object.values(metafile.outputs)
      .flatMap(({ inputs }) => Object.keys(inputs))
      .filter(file => file.includes('node_modules/zod')),
  ).toEqual([])
  expect(gzipSync(outputFiles[0]?.contents ?? '').length).toBeLessThanOrEqual(20_000)
})

function filesUnder(home: string): string[] {
  return readdirSync(home, { recursive: true, encoding: 'utf8' })
}
