/** The table of imports holds. Each rule first goes red on made-up sources; then the repository itself is clean. */
import { describe, expect, test } from 'vitest'
import { type Tree, unusedArrowsIn, violationsIn, type Workspace } from './import-rules.ts'
import { isPublic, readTree } from './repository.ts'
import { factsOf, type Source } from './source-facts.ts'

const repository = readTree()

test('this repository keeps its import rules', () => {
  expect(repository.sources.length).toBeGreaterThan(0)
  expect(violationsIn(repository)).toEqual([])
})

test('another file names each export, unless users of a package can import it', () => {
  expect(
    unusedExportsIn(
      repository.sources.filter(({ path }) => !isPublic(path)),
      repository.sources,
    ),
  ).toEqual([])
  const lonely = { path: 'apps/api/src/a.ts', text: 'export const lonely = 1\nexport const shared = 2' }
  expect(unusedExportsIn([lonely], [lonely, { path: 'apps/api/src/b.ts', text: 'shared()' }])).toEqual(['apps/api/src/a.ts exports lonely'])
})

describe('the rooms of the API', () => {
  test('import each other wherever the table allows it: it has no arrow too many', () => {
    expect(unusedArrowsIn(repository.sources.filter(({ path }) => path.startsWith('apps/api/src/')))).toEqual([])
    expect(unusedArrowsIn([])).toContain('feed → telemetry')
  })

  test.each([
    ['store/turns/claim.ts', '../../access/principal.ts', 'store may not import access'],
    ['stream/hub.ts', '../turns/relay.ts', 'stream may not import turns'],
    ['turns/relay.ts', '../stream/hub.ts', 'turns may not import stream'],
    ['access/guard.ts', '../http/server.ts', 'access may not import http'],
    ['telemetry/metrics.ts', '../api.ts', 'telemetry may not import api.ts'],
    ['config.ts', './turns/relay.ts', 'config.ts may not import turns'],
    ['config.ts', './api.ts', 'config.ts may not import api.ts'],
    ['helpers.ts', './store/rows.ts', 'helpers.ts may not import store'],
  ])('%s may not import %s', (file, specifier, reason) => {
    const path = `apps/api/src/${file}`
    expect(violationsOf({ [path]: `import { x } from '${specifier}'` })).toEqual([`${path} imports ${specifier}: ${reason}`])
  })

  test.each([
    ['http/server.ts', '../stream/hub.ts'],
    ['stream/hub.ts', '../log/log-fold.ts'],
    ['access/keyring.ts', '../config.ts'],
    ['api.ts', './turns/relay.ts'],
    ['config.ts', './prices/prices.ts'],
    ['store/turns/claim.test.ts', '../../http/server.ts'],
  ])('%s may import %s', (file, specifier) => {
    expect(violationsOf({ [`apps/api/src/${file}`]: `import { x } from '${specifier}'` })).toEqual([])
  })
})

describe('who may know whom', () => {
  test.each([
    ['packages/protocol', '@rivulet/broker'],
    ['packages/protocol', '@rivulet/runtime'],
    ['packages/runtime', '@rivulet/protocol'],
    ['packages/broker', '@rivulet/agent'],
    ['packages/agent', '@rivulet/worker'],
    ['packages/client', '@rivulet/broker'],
    ['packages/client', '@rivulet/runtime'],
    ['packages/engines', '@rivulet/protocol'],
    ['packages/views', '@rivulet/agent'],
    ['packages/worker', '@rivulet/views'],
    ['packages/worker', '@rivulet/api'],
    ['apps/api', '@rivulet/worker'],
    ['apps/api', '@rivulet/agents'],
    ['apps/agents', '@rivulet/broker'],
    ['apps/agents', 'rivulet'],
    ['apps/console', '@rivulet/protocol'],
  ])('%s may not import %s', (folder, name) => {
    const file = `${folder}/src/index.ts`
    expect(violationsOf({ [file]: `import { x } from '${name}'` })).toEqual([
      `${file} imports ${name}: ${folder} may not know ${folderOf(name)}`,
    ])
  })

  test.each([
    ['packages/broker', '@rivulet/protocol'],
    ['packages/agent', '@rivulet/protocol'],
    ['packages/agent', '@rivulet/runtime'],
    ['packages/client', '@rivulet/protocol'],
    ['packages/views', '@rivulet/protocol'],
    ['packages/worker', '@rivulet/broker'],
    ['packages/worker', '@rivulet/runtime'],
    ['apps/api', '@rivulet/broker'],
    ['apps/agents', '@rivulet/worker'],
    ['apps/agents', '@rivulet/agent'],
    ['apps/console', '@rivulet/client'],
    ['apps/cli', '@rivulet/engines'],
    ['apps/cli', '@rivulet/api'],
  ])('%s may import %s', (folder, name) => {
    expect(violationsOf({ [`${folder}/src/index.ts`]: `import { x } from '${name}'` })).toEqual([])
  })

  test.each([
    `import type { X } from '@rivulet/broker'`,
    `import '@rivulet/broker'`,
    `export * from '@rivulet/broker'`,
    `export { x } from '@rivulet/broker'`,
    `const x = await import('@rivulet/broker')`,
    'const x = await import(`@rivulet/broker`)',
    `let x: import('@rivulet/broker').X`,
    `const x = require('@rivulet/broker')`,
    `const x = require.resolve('@rivulet/broker')`,
  ])('however it is written: %s', code => {
    expect(violationsOf({ 'packages/protocol/src/index.ts': code })).toHaveLength(1)
  })

  test('a folder that the table does not know needs a row', () => {
    const tree = { ...made({}), workspaces: [workspace('packages/utils')] }
    expect(violationsIn(tree)).toEqual(['packages/utils has no row in the table of imports'])
  })

  test('a test may know every package, but no other app', () => {
    expect(violationsOf({ 'packages/broker/src/log.test.ts': `import { x } from '@rivulet/engines'` })).toEqual([])
    expect(violationsOf({ 'packages/broker/src/log.test.ts': `import { x } from '@rivulet/api'` })).toEqual([
      'packages/broker/src/log.test.ts imports @rivulet/api: packages/broker may not know apps/api',
    ])
  })

  test('an example knows what its reader would: the SDKs, what the root depends on, and its neighbours', () => {
    const known = ['@rivulet/worker', '@rivulet/agent', 'vitest', 'node:fs', './other.ts']
    for (const name of known) expect(violationsOf({ 'examples/a.ts': `import { x } from '${name}'` })).toEqual([])
    expect(violationsOf({ 'examples/a.ts': `import { x } from '@rivulet/broker'` })).toEqual([
      'examples/a.ts imports @rivulet/broker: examples may not know packages/broker',
    ])
    expect(violationsOf({ 'examples/a.ts': `import { x } from '@rivulet/agents'` })).toHaveLength(1)
    expect(violationsOf({ 'examples/a.ts': `import { x } from '../test/support/until.ts'` })).toEqual([
      'examples/a.ts imports ../test/support/until.ts: a relative import stays inside examples',
    ])
  })

  test('what crosses processes, in test/, may know everyone', () => {
    expect(violationsOf({ 'test/flow/task.test.ts': `import { x } from '@rivulet/api'` })).toEqual([])
  })
})

describe('public entries', () => {
  test.each(['packages/worker/src/index.ts', 'packages/worker/src/index.test.ts', 'apps/cli/src/main.ts', 'test/flow/a.test.ts'])(
    '%s may not import past an index',
    file => {
      expect(violationsOf({ [file]: `import { x } from '@rivulet/broker/src/keys.ts'` })).toEqual([
        `${file} imports @rivulet/broker/src/keys.ts: it goes past what packages/broker/package.json exports`,
      ])
    },
  )

  test('a subpath that a package exports is a public entry', () => {
    const sources = { 'apps/console/src/index.tsx': `import { useTask } from '@rivulet/client/react'` }
    expect(violationsOf(sources)).toHaveLength(1)
    const client = { ...workspace('packages/client'), entries: ['.', './react'] }
    const tree = made(sources)
    expect(violationsIn({ ...tree, workspaces: [client, ...tree.workspaces.filter(({ name }) => name !== client.name)] })).toEqual([])
  })

  test('a relative import does not leave its folder', () => {
    const reason = 'a relative import stays inside packages/worker'
    expect(violationsOf({ 'packages/worker/src/a.ts': `import { x } from '../../broker/src/index.ts'` })).toEqual([
      `packages/worker/src/a.ts imports ../../broker/src/index.ts: ${reason}`,
    ])
    expect(violationsOf({ 'packages/worker/src/a.ts': `import { x } from '../../../test/support/script.ts'` })).toHaveLength(1)
    expect(violationsOf({ 'packages/worker/src/a.test.ts': `import { x } from '../../../test/flow/script.ts'` })).toHaveLength(1)
    expect(violationsOf({ 'packages/worker/src/a.test.ts': `import { x } from '../../../test/support/script.ts'` })).toEqual([])
    expect(violationsOf({ 'packages/worker/src/deep/a.ts': `import { x } from '../b.ts'` })).toEqual([])
  })

  test('a test in test/ does not reach into a package', () => {
    expect(violationsOf({ 'test/flow/a.test.ts': `import { x } from '../../packages/broker/src/index.ts'` })).toEqual([
      'test/flow/a.test.ts imports ../../packages/broker/src/index.ts: a package is imported by its name',
    ])
    expect(violationsOf({ 'test/flow/a.test.ts': `import { x } from '../support/script.ts'` })).toEqual([])
  })

  test.each(['@rivulet/broker', '#keys', '/packages/broker/src/keys.ts', 'file:///keys.ts'])(
    'inside a package files import each other by relative name, not as %s',
    specifier => {
      expect(violationsOf({ 'packages/broker/src/a.ts': `import { x } from '${specifier}'` })).toEqual([
        `packages/broker/src/a.ts imports ${specifier}: files of one folder import each other by relative name`,
      ])
    },
  )
})

describe('no circles', () => {
  const folder = 'packages/broker/src'

  test('three files in a circle are named in order', () => {
    expect(
      violationsOf({
        [`${folder}/a.ts`]: `import { b } from './b.ts'`,
        [`${folder}/b.ts`]: `export * from './deep/c.ts'`,
        [`${folder}/deep/c.ts`]: `const a = await import('../a.ts')`,
      }),
    ).toEqual([`import cycle: ${folder}/a.ts → ${folder}/b.ts → ${folder}/deep/c.ts → ${folder}/a.ts`])
  })

  test('a circle that is entered from outside is seen', () => {
    expect(
      violationsOf({
        [`${folder}/a.ts`]: `import './b.ts'`,
        [`${folder}/b.ts`]: `import './c.ts'`,
        [`${folder}/c.ts`]: `import './b.ts'`,
      }),
    ).toEqual([`import cycle: ${folder}/b.ts → ${folder}/c.ts → ${folder}/b.ts`])
  })

  test('two ways to one file are no circle', () => {
    expect(
      violationsOf({
        [`${folder}/a.ts`]: `import './b.ts'\nimport './c.ts'`,
        [`${folder}/b.ts`]: `import './c.ts'`,
        [`${folder}/c.ts`]: '',
      }),
    ).toEqual([])
  })

  test.each([
    `import type { A } from './a.ts'`,
    `import { type A } from './a.ts'`,
    `export type { A } from './a.ts'`,
    `let a: import('./a.ts').A`,
  ])('an import of types closes a circle, too: %s', code => {
    expect(violationsOf({ [`${folder}/a.ts`]: `import './b.ts'`, [`${folder}/b.ts`]: code })).toEqual([
      `import cycle: ${folder}/a.ts → ${folder}/b.ts → ${folder}/a.ts`,
    ])
  })
})

describe('what runs in a browser', () => {
  test.each(['protocol', 'runtime', 'agent', 'client'])('packages/%s uses nothing of Node', name => {
    const file = `packages/${name}/src/index.ts`
    expect(violationsOf({ [file]: `import { readFile } from 'node:fs/promises'` })).toEqual([
      `${file} imports node:fs/promises: packages/${name} runs without Node`,
    ])
    expect(violationsOf({ [file]: `import { join } from 'path'` })).toHaveLength(1)
  })

  test('the tests of the SDKs may use Node, those of the protocol may not', () => {
    expect(violationsOf({ 'packages/agent/src/a.test.ts': `import 'node:http'` })).toEqual([])
    expect(violationsOf({ 'packages/client/src/a.test.ts': `import 'node:http'` })).toEqual([])
    expect(violationsOf({ 'packages/protocol/src/a.test.ts': `import 'node:http'` })).toHaveLength(1)
  })

  test('others may use Node', () => {
    expect(violationsOf({ 'packages/broker/src/a.ts': `import 'node:fs'` })).toEqual([])
  })
})

describe('the environment', () => {
  const reason = 'reads the environment: only main.ts, config.ts and environment.ts of an app may'

  test.each([
    'const url = process.env.REDIS_URL',
    `const url = process['env'].REDIS_URL`,
    'const { env } = process',
    'const { env: { REDIS_URL } } = process',
    'const { pid, ...rest } = process',
    'const url = globalThis.process?.env.REDIS_URL',
    'const url = import.meta.env.VITE_URL',
    `import { env as settings } from 'node:process'`,
    `import host from 'node:process'\nconst url = host.env.REDIS_URL`,
  ])('is not read below main: %s', code => {
    expect(violationsOf({ 'packages/broker/src/a.ts': code })).toEqual([`packages/broker/src/a.ts ${reason}`])
  })

  test('is read by the few files of an app that are named for it, and by no file of a package', () => {
    const code = 'const url = process.env.REDIS_URL'
    expect(violationsOf({ 'apps/api/src/main.ts': code, 'apps/api/src/config.ts': code, 'apps/cli/src/environment.ts': code })).toEqual([])
    expect(violationsOf({ 'apps/api/src/stream/hub.ts': code })).toEqual([`apps/api/src/stream/hub.ts ${reason}`])
    expect(violationsOf({ 'packages/worker/src/main.ts': code })).toEqual([`packages/worker/src/main.ts ${reason}`])
    expect(violationsOf({ 'packages/worker/src/a.test.ts': code })).toEqual([])
  })

  test('is not read by a comment, a string or a member that happens to be called env', () => {
    const code = `// process.env.A\nconst a = 'process.env.A'\nconst b = context.env`
    expect(factsOf({ path: 'a.ts', text: code }).readsEnvironment).toBe(false)
  })
})

describe('declared dependencies', () => {
  test('a package that a workspace imports is in its own package.json', () => {
    const file = 'packages/broker/src/a.ts'
    expect(violationsOf({ [file]: `import { z } from 'zod/v4'` })).toEqual([
      `${file} imports zod/v4: packages/broker does not declare zod in its package.json`,
    ])
    expect(violationsOf({ [file]: `import { x } from '@scope/declared/deep'` })).toEqual([])
  })

  test('a workspace declares the workspaces that it imports', () => {
    const tree = made({ 'packages/broker/src/a.ts': `import { x } from '@rivulet/protocol'` })
    const workspaces = tree.workspaces.map(workspace => ({ ...workspace, dependencies: [] }))
    expect(violationsIn({ ...tree, workspaces })).toEqual([
      'packages/broker/src/a.ts imports @rivulet/protocol: packages/broker does not declare @rivulet/protocol in its package.json',
    ])
  })

  test('a test may also use what the root declares', () => {
    expect(violationsOf({ 'packages/broker/src/a.test.ts': `import { test } from 'vitest'` })).toEqual([])
    expect(violationsOf({ 'packages/broker/src/a.ts': `import { test } from 'vitest'` })).toHaveLength(1)
    expect(violationsOf({ 'test/flow/a.test.ts': `import { test } from 'vitest'\nimport pino from 'pino'` })).toEqual([
      'test/flow/a.test.ts imports pino: the root does not declare pino in its package.json',
    ])
  })
})

test('a file that does not parse is an error, not a clean file', () => {
  expect(() => violationsOf({ 'packages/broker/src/a.ts': 'import {' })).toThrow('packages/broker/src/a.ts')
})

/** By the words of each file, which finds fewer than a compiler does, and takes a second for all of them. */
function unusedExportsIn(sources: readonly Source[], all: readonly Source[]): string[] {
  const filesWith = new Map<string, number>()
  for (const { text } of all) for (const word of new Set(text.match(/[\w$]+/g))) filesWith.set(word, (filesWith.get(word) ?? 0) + 1)
  return sources.flatMap(({ path, text }) =>
    Array.from(text.matchAll(/^export (?:async )?(?:const|function\*?|class|type|interface) (\w+)/gm), ([, name = '']) => name)
      .filter(name => filesWith.get(name) === 1)
      .map(name => `${path} exports ${name}`),
  )
}

function violationsOf(files: Record<string, string>): string[] {
  return violationsIn(made(files))
}

/** A repository of every workspace in the design, each of which declares all the others, so that only the rule in question can object. */
function made(files: Record<string, string>): Tree {
  const packages = ['protocol', 'runtime', 'broker', 'agent', 'client', 'engines', 'views', 'worker'].map(name =>
    workspace(`packages/${name}`),
  )
  const apps = ['api', 'agents', 'console', 'cli'].map(name => workspace(`apps/${name}`))
  const workspaces = [...packages, ...apps]
  const dependencies = ['@scope/declared', ...workspaces.map(({ name }) => name)]
  return {
    workspaces: workspaces.map(workspace => ({ ...workspace, dependencies })),
    rootDependencies: ['vitest'],
    sources: Object.entries(files).map(([path, text]) => ({ path, text })),
  }
}

function workspace(folder: string): Workspace {
  return { folder, name: folder === 'apps/cli' ? 'rivulet' : `@rivulet/${folder.split('/')[1]}`, entries: ['.'], dependencies: [] }
}

function folderOf(name: string): string {
  return made({}).workspaces.find(workspace => workspace.name === name)?.folder ?? 'nowhere'
}
