/**
 * The programs of the platform, each as one file of plain JavaScript: loaded in a quarter of the time, and without node_modules.
 *
 * Texts of Lua and the lease thread are part of the bundle. A module that reads other files (migrations, pages) finds them, because its
 * `import.meta.url` stays that of its source file: below the root of the tree, or below the folder of the bundle.
 */
import { readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { inlinedModules } from './inlined-modules.ts'

export type Program = 'api' | 'worker'

export const entries: Record<Program, string> = { api: 'apps/api/src/main.ts', worker: 'apps/agents/src/main.ts' }

type BundleOptions = {
  /** The tree whose sources are bundled. */
  root: string
  /** The folder that gets a folder for each program, with `main.mjs` and its source map. */
  out: string
  /** More programs of the tree. */
  also?: Record<string, string>
  /** Imports that are left alone, because what needs them is not used. */
  without?: string[]
  /** The file that handles failpoints. Default none: then the bundle has no failpoint. */
  failpoints?: string
  /** `cjs`: a script `main.cjs`, whose compiled code V8 can store, which it cannot for a module. Default `esm`. */
  format?: BundleFormat
}

type BundleFormat = 'esm' | 'cjs'

export async function bundlePrograms({ root, out, also = {}, without = [], failpoints, format }: BundleOptions): Promise<void> {
  const base = JSON.stringify(pathToFileURL(join(root, '/')).href)
  const named = Object.entries({ ...entries, ...also }).map(([name, path]) => [`${name}/main`, path])
  await bundleFiles({ root, out, entries: Object.fromEntries(named), base, external: without, failpoints, format })
}

/**
 * @param entries sources by the names of their bundles, without an extension
 * @param base JavaScript that gives the URL of the root that modules find in their `import.meta.url`; `bundleUrl` is that of the bundle
 */
export async function bundleFiles(options: {
  root: string
  out: string
  entries: Record<string, string>
  base: string
  external: string[]
  failpoints?: string | undefined
  format?: BundleFormat | undefined
}): Promise<void> {
  const { root, out, entries, base, external, failpoints, format = 'esm' } = options
  await build({
    absWorkingDir: root,
    entryPoints: Object.entries(entries).map(([name, path]) => ({ in: path, out: name })),
    outdir: out,
    bundle: true,
    external,
    platform: 'node',
    target: 'node20',
    ...(format === 'esm' ? asModule : asScript),
    sourcemap: 'linked',
    sourcesContent: false,
    logLevel: 'silent',
    ...(failpoints ? { inject: [failpoints] } : withoutFailpoints),
    plugins: [inlineModules(root), placeEachFile(root, base)],
  })
}

/** With simpler syntax, because only then esbuild passes a constant on to other modules and removes what depends on it. */
const withoutFailpoints = { define: { 'globalThis.rivuletFailpoint': 'undefined' }, minifySyntax: true }

const asScript = { format: 'cjs', outExtension: { '.js': '.cjs' } } as const

/** What packages that are written as CommonJS miss in a module. */
export const commonJsBanner = [
  "import { createRequire as createBundleRequire } from 'node:module'",
  'const bundleUrl = import.meta.url',
  'const require = createBundleRequire(bundleUrl)',
].join(';')

const asModule = { format: 'esm', outExtension: { '.js': '.mjs' }, banner: { js: commonJsBanner } } as const

function inlineModules(root: string): Plugin {
  return {
    name: 'inline modules',
    setup(build) {
      build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const inline = inlinedModules[relative(root, path)]
        return inline ? { contents: await inline(root), loader: 'js' } : undefined
      })
    },
  }
}

/** `import.meta.url` and `__dirname` would be those of the bundle: each file gets its own again, below `base`. */
function placeEachFile(root: string, base: string): Plugin {
  return {
    name: 'place each file',
    setup(build) {
      build.onLoad({ filter: /\.[cm]?[jt]s$/ }, async ({ path }) => {
        const text = await readFile(path, 'utf8')
        if (!/import\.meta\.url|__dirname/.test(text)) return undefined
        const url = `new URL(${JSON.stringify(relative(root, path))}, ${base})`
        const contents = text
          .replaceAll('import.meta.url', `${url}.href`)
          .replaceAll(/\b__dirname\b/g, `require('node:url').fileURLToPath(new URL('.', ${url}))`)
        return { contents, loader: path.endsWith('ts') ? 'ts' : 'js' }
      })
    },
  }
}
