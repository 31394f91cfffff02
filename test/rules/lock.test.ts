/** `npm ci` works on every platform and against any registry. Each rule first goes red on a made-up lock. */
import { describe, expect, test } from 'vitest'
import { type Lock, type LockEntry, lockViolations, type Project } from './lock-rules.ts'
import { type Manifest, readJson, workspaceFolders } from './repository.ts'

test('the lock of this repository is complete, tied to no host, and in step with each package.json', () => {
  const folders = ['', ...workspaceFolders()]
  const manifests = Object.fromEntries(folders.map(folder => [folder, readJson<Manifest>(`${folder && `${folder}/`}package.json`)]))
  expect(lockViolations({ lock: readJson<Lock>('package-lock.json'), manifests })).toEqual([])
})

test.each(['test/sdks', 'bench'])('so is that of %s, which is installed apart', folder => {
  const manifests = { '': readJson<Manifest>(`${folder}/package.json`) }
  expect(lockViolations({ lock: readJson<Lock>(`${folder}/package-lock.json`), manifests })).toEqual([])
})

test('a sound lock has nothing wrong with it', () => {
  expect(lockViolations(project({}))).toEqual([])
})

describe('optional packages', () => {
  const esbuild = { version: '0.28.2', optionalDependencies: { '@esbuild/linux-arm64': '0.28.2' } }

  test('one without an entry is missed, wherever it is asked for', () => {
    expect(lockViolations(project({ 'node_modules/esbuild': esbuild, 'packages/broker/node_modules/esbuild': esbuild }))).toEqual([
      'node_modules/esbuild may need @esbuild/linux-arm64, which has no entry',
      'packages/broker/node_modules/esbuild may need @esbuild/linux-arm64, which has no entry',
    ])
  })

  test('one that only the root asks for is missed', () => {
    const sound = project({})
    const optionalDependencies = { 'server-darwin-x64': '^1.0.0' }
    const lock = { packages: { ...sound.lock.packages, '': { ...sound.lock.packages[''], optionalDependencies } } }
    const manifests = { ...sound.manifests, '': { name: 'rivulet', workspaces: ['packages/*'], optionalDependencies } }
    expect(lockViolations({ lock, manifests })).toEqual(['the root may need server-darwin-x64, which has no entry'])
  })

  test.each([
    'node_modules/a/node_modules/esbuild/node_modules/@esbuild/linux-arm64',
    'node_modules/a/node_modules/@esbuild/linux-arm64',
    'node_modules/@esbuild/linux-arm64',
  ])('one is found where Node would find it: %s', path => {
    expect(lockViolations(project({ 'node_modules/a/node_modules/esbuild': esbuild, [path]: { version: '0.28.2' } }))).toEqual([])
  })

  test('one is not found where Node would not look', () => {
    const elsewhere = 'node_modules/b/node_modules/@esbuild/linux-arm64'
    expect(lockViolations(project({ 'node_modules/esbuild': esbuild, [elsewhere]: { version: '0.28.2' } }))).toHaveLength(1)
  })

  test('another version further up does not stand in for it', () => {
    const entries = { 'node_modules/a/node_modules/esbuild': esbuild, 'node_modules/@esbuild/linux-arm64': { version: '0.18.20' } }
    expect(lockViolations(project(entries))).toEqual([
      'node_modules/a/node_modules/esbuild may need @esbuild/linux-arm64 0.28.2, and would find 0.18.20',
    ])
  })
})

describe('hosts', () => {
  test.each(['https://registry.example/zod/-/zod-4.6.7.tgz', 'git+ssh://git@code.example/zod.git#1f3a'])('%s is tied to one', resolved => {
    expect(lockViolations(project({ 'node_modules/zod': { version: '4.6.7', resolved } }))).toEqual([
      `node_modules/zod is tied to a host: ${resolved}`,
    ])
  })
})

describe('install scripts', () => {
  const withScript = { 'packages/broker/node_modules/esbuild': { version: '0.28.2', hasInstallScript: true } }
  const reviewedAs = (allowScripts: Record<string, boolean>, entries: Record<string, LockEntry> = withScript) => {
    const { lock, manifests } = project(entries)
    return lockViolations({ lock, manifests: { ...manifests, '': { name: 'rivulet', workspaces: ['packages/*'], allowScripts } } })
  }

  test('each is denied by the name of its package', () => {
    expect(reviewedAs({ esbuild: false })).toEqual([])
    expect(reviewedAs({})).toEqual(['esbuild has an install script, and allowScripts does not name it'])
  })

  test('none is allowed, because an install without scripts has to be enough', () => {
    expect(reviewedAs({ esbuild: true })).toEqual(['esbuild may run its install script, and npm ci --ignore-scripts has to be enough'])
  })

  test('one that is gone is not named', () => {
    expect(reviewedAs({ esbuild: false }, {})).toEqual(['allowScripts names esbuild, which has no install script'])
  })
})

describe('workspaces', () => {
  test('one that the lock has not seen', () => {
    const { lock, manifests } = project({})
    expect(lockViolations({ lock, manifests: { ...manifests, 'packages/client': { name: '@rivulet/client' } } })).toEqual([
      'packages/client/package.json is not in the lock',
    ])
  })

  test('one that is gone', () => {
    expect(lockViolations(project({ 'packages/old': { name: '@rivulet/old', version: '0.1.0' } }))).toEqual([
      'packages/old is in the lock, and no longer a workspace',
    ])
  })

  test('one that is not linked, or linked to another folder', () => {
    const reason = '@rivulet/broker is not linked to packages/broker'
    expect(lockViolations(project({ 'node_modules/@rivulet/broker': { version: '0.1.0' } }))).toEqual([reason])
    expect(lockViolations(project({ 'node_modules/@rivulet/broker': { link: true, resolved: 'packages/bus' } }))).toEqual([reason])
  })

  test('one that was renamed', () => {
    expect(lockViolations(project({ 'packages/broker': { name: '@rivulet/bus' } }))).toEqual([
      'packages/broker/package.json has another name in the lock: @rivulet/bus',
    ])
  })

  test('one whose dependencies changed since', () => {
    const stale = { name: '@rivulet/broker', dependencies: { ioredis: '5.0.0' } }
    expect(lockViolations(project({ 'packages/broker': stale }))).toEqual([
      'packages/broker/package.json declares other things than the lock',
    ])
  })

  test('a root that lists other workspaces', () => {
    expect(lockViolations(project({ '': { name: 'rivulet', workspaces: ['packages/*', 'apps/*'] } }))).toEqual([
      'package.json declares other things than the lock',
    ])
  })
})

/** A sound project of one workspace, with these entries added to its lock or put in place of its own. */
function project(entries: Record<string, LockEntry>): Project {
  return {
    lock: {
      packages: {
        '': { name: 'rivulet', workspaces: ['packages/*'] },
        'node_modules/@rivulet/broker': { link: true, resolved: 'packages/broker' },
        'node_modules/ioredis': { version: '6.0.0' },
        'packages/broker': { name: '@rivulet/broker', dependencies: { ioredis: '6.0.0' } },
        ...entries,
      },
    },
    manifests: {
      '': { name: 'rivulet', workspaces: ['packages/*'] },
      'packages/broker': { name: '@rivulet/broker', dependencies: { ioredis: '6.0.0' } },
    },
  }
}
