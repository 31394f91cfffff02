/**
 * The programs of the platform, each as one file of plain JavaScript: loaded in a quarter of the time, and without node_modules.
 *
 * A module that looks for files beside itself (scripts in Lua, migrations, pages) finds them: in the bundle it still believes to lie at its old
 * place, below the root of the tree or below the folder of the bundle.
 */
import { readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'

export type Program = 'api' | 'worker'

export const entries: Record<Program, string> = { api: 'apps/api/src/main.ts', worker: 'apps/agents/src/main.ts' }

/** What a program reads while it runs, from the root of the tree. */
export const filesOf: Record<Program, string[]> = {
  api: ['migrations', 'packages/broker/src/lua', 'apps/console/dist', 'node_modules/@fastify/swagger-ui/static'],
  worker: ['packages/broker/src/lua', 'packages/worker/src/lease-thread'],
}

export type BundleOptions = {
  /** The tree whose sources are bundled. */
  root: string
  /** The folder that gets a folder for each program, with `main.mjs` and its source map. */
  out: string
  /** Where the files are that a program reads: where they are now, or below its own folder, wherever that will be. Default 'in the tree'. */
  files?: 'in the tree' | 'below the bundle'
  /** More programs of the tree. */
  also?: Record<string, string>
  /** Imports that are left alone, because what needs them is not used. */
  without?: string[]
  /** The file that handles failpoints. Default none: then the bundle has no failpoint. */
  failpoints?: string
}

export async function bundlePrograms({
  root,
  out,
  files = 'in the tree',
  also = {},
  without = [],
  failpoints,
}: BundleOptions): Promise<void> {
  const base = files === 'in the tree' ? JSON.stringify(pathToFileURL(join(root, '/')).href) : 'bundleUrl'
  await build({
    absWorkingDir: root,
    entryPoints: Object.entries({ ...entries, ...also }).map(([name, path]) => ({ in: path, out: `${name}/main` })),
    outdir: out,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    external: without,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    banner: { js: banner },
    sourcemap: 'linked',
    sourcesContent: false,
    logLevel: 'silent',
    ...(failpoints ? { inject: [failpoints] } : withoutFailpoints),
    plugins: [placeEachFile(root, base)],
  })
}

/** With simpler syntax, because only then esbuild passes a constant on to other modules and removes what depends on it. */
const withoutFailpoints = { define: { 'globalThis.rivuletFailpoint': 'undefined' }, minifySyntax: true }

/** What packages that are written as CommonJS miss in a module. */
const banner = [
  "import { createRequire as createBundleRequire } from 'node:module'",
  'const bundleUrl = import.meta.url',
  'const require = createBundleRequire(bundleUrl)',
].join(';')

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
