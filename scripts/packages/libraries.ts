/** The packages that programs import, as JavaScript with declarations and source maps, each in a folder that `npm pack` takes as it is. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { commonJsBanner } from '../bundle.ts'
import { inlinedModules } from '../inlined-modules.ts'
import { type Manifest, publishedManifest, type RootManifest } from './manifest.ts'

/** In the order of their imports. */
export const libraries = ['protocol', 'contract', 'runtime', 'broker', 'client', 'worker', 'agent', 'views']

const testing = 'apps/cli/src/project/testing.ts'

/** Builds them into `out/<name>`. Returns the file with the declarations of `rivulet/testing`, which are compiled on the way. */
export async function buildLibraries(root: string, out: string): Promise<string> {
  const emitted = join(out, '.emitted')
  rmSync(emitted, { recursive: true, force: true })
  compile(root, emitted)
  const rootManifest: RootManifest = readJson(join(root, 'package.json'))
  for (const name of libraries) {
    const [source, target] = [join(root, 'packages', name), join(out, name)]
    rmSync(target, { recursive: true, force: true })
    mkdirSync(target, { recursive: true })
    cpSync(join(emitted, name, 'packages', name, 'src'), join(target, 'dist'), { recursive: true })
    for (const file of filesIn(join(target, 'dist'), /\.d\.ts$/)) nameJavaScript(join(target, 'dist', file))
    cpSync(join(source, 'README.md'), join(target, 'README.md'))
    cpSync(join(root, 'LICENSE'), join(target, 'LICENSE'))
    const manifest = publishedManifest(readJson<Manifest>(join(source, 'package.json')), `packages/${name}`, rootManifest)
    writeFileSync(join(target, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  }
  for (const [module, inline] of Object.entries(inlinedModules)) {
    writeFileSync(join(out, module.replace('packages/', '').replace('/src/', '/dist/').replace(/\.ts$/, '.js')), await inline(root))
  }
  await carryCommonJs(out)
  return join(emitted, 'testing', testing.replace(/\.ts$/, '.d.ts'))
}

/**
 * Compiles each package as a program of its own, together with the sources that it imports. In one program of all, the declarations of a package would name
 * an inferred type by a package that exports it again, which need not be installed: then TypeScript takes the type for `any`.
 */
function compile(root: string, emitted: string): void {
  for (const name of libraries) compileFrom(root, join(emitted, name), join(root, 'packages', name, 'src'))
  compileFrom(root, join(emitted, 'testing'), join(root, testing))
}

function compileFrom(root: string, emitted: string, source: string): void {
  const config = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      ...{ noEmit: false, declaration: true, sourceMap: true, inlineSources: true, allowJs: true },
      ...{ allowImportingTsExtensions: false, rewriteRelativeImportExtensions: true, stripInternal: true },
      ...{
        rootDir: root,
        outDir: emitted,
        typeRoots: [join(root, 'node_modules/@types')],
        lib: ['ES2023', 'ES2024.String', 'ESNext.Disposable', 'DOM'],
      },
    },
    include: [source],
    exclude: ['test.ts', 'test.tsx'].map(end => join(source, '**', `*.${end}`)),
  }
  mkdirSync(emitted, { recursive: true })
  const file = join(emitted, 'tsconfig.json')
  writeFileSync(file, JSON.stringify(config))
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', file], { stdio: 'inherit' })
}

/** The compiler leaves `./cursor.ts` in declarations, which is no file of the package. */
function nameJavaScript(file: string): void {
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replaceAll(/((?:from|import)\s*\(?\s*['"]\.{1,2}\/[^'"]*)\.tsx?(['"])/g, '$1.js$2'))
}

/**
 * ioredis and BullMQ become part of the broker's module, with the `require` that CommonJS needs. Left as dependencies, they end a user's bundle of the
 * worker at its start: "Dynamic require of events is not supported". ioredis stays a dependency for its types.
 */
async function carryCommonJs(out: string): Promise<void> {
  const folder = join(out, 'broker')
  const manifest = readJson<Manifest>(join(folder, 'package.json'))
  const { bullmq: _, ...dependencies } = manifest.dependencies ?? {}
  await build({
    entryPoints: [join(folder, 'dist/index.js')],
    outfile: join(folder, 'dist/index.js'),
    allowOverwrite: true,
    external: Object.keys(dependencies).filter(name => name !== 'ioredis'),
    ...{
      bundle: true,
      platform: 'node',
      target: 'node20',
      format: 'esm',
      sourcemap: 'linked',
      banner: { js: commonJsBanner },
      logLevel: 'silent',
    },
  })
  for (const file of filesIn(join(folder, 'dist'), /(?<!^index)\.js(\.map)?$/)) rmSync(join(folder, 'dist', file))
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ ...manifest, dependencies }, null, 2)}\n`)
}

function filesIn(folder: string, pattern: RegExp): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(file => pattern.test(file))
}

export function readJson<T>(file: string): T {
  return JSON.parse(readFileSync(file, 'utf8')) as T
}
