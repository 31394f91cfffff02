/** The bill of materials of a release is that of the lock file. */
import { expect, test } from 'vitest'
import { sbomOf } from '../../scripts/packages/sbom.ts'
import { readText } from './repository.ts'

type Component = { name: string; version: string; scope: string; purl: string; licenses?: object[]; hashes?: { content: string }[] }

const componentsOf = (lock: string): Component[] => JSON.parse(sbomOf(lock, '1.2.3')).components

test('it names what a release contains, with licence and hash, and no package of tests and checks alone', () => {
  const components = componentsOf(readText('package-lock.json'))
  const names = components.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['fastify', 'ioredis', 'pg', 'react', 'zod', 'drizzle-orm']))
  expect(names.filter(name => ['vitest', '@biomejs/biome', 'playwright-core', '@rivulet/api', ''].includes(name))).toEqual([])
  expect(components.filter(({ licenses, hashes }) => licenses?.length !== 1 || hashes?.[0]?.content.length !== 128)).toEqual([])
})

test('it names each version once, however often it is installed', () => {
  const ofZod = { version: '4.0.0', license: 'MIT', integrity: 'sha512-AAAA' }
  const packages = {
    '': { version: '1.2.3' },
    'packages/worker': { version: '1.2.3' },
    'node_modules/@rivulet/worker': { link: true },
    'node_modules/zod': ofZod,
    'node_modules/@a/b/node_modules/zod': ofZod,
    'node_modules/@a/b': { version: '2.0.0', devOptional: true },
    'node_modules/vitest': { version: '3.0.0', dev: true },
  }
  expect(componentsOf(JSON.stringify({ packages }))).toMatchObject([
    { name: '@a/b', scope: 'optional', purl: 'pkg:npm/%40a/b@2.0.0' },
    { name: 'zod', scope: 'required', purl: 'pkg:npm/zod@4.0.0', hashes: [{ alg: 'SHA-512', content: '000000' }] },
  ])
})
