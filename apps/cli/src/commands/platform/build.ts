/** `rivulet build <files>`: a folder with a worker that has the agents of these files. It runs with plain Node, and needs no install. */
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import type { Context } from '../../context.ts'
import { isPython } from '../../platform/agents/python.ts'
import { builtWorker } from '../../platform/programs.ts'
import { toJsonLine } from '../../terminal/json-line.ts'

/**
 * What packages that are written as CommonJS miss in a module. A global, because a name of the banner could be that of a bundled module; in pieces, because
 * the build of this program replaces the expression where it finds it.
 */
const commonJsBanner = `import { createRequire as requireOfWorker } from 'node:module'; globalThis.require ??= requireOfWorker(${['import', 'meta', 'url'].join('.')})`

type BuildOptions = { out: string; external: string[]; json?: boolean }

export function addBuildCommand(program: Command, context: Context): void {
  program
    .command('build')
    .description('bundle a worker with the agents that these files export, to run with plain Node')
    .argument('<files...>', 'files with agents', (file: string, earlier: string[] = []) => [...earlier, checkFile(file)])
    .option('--out <folder>', 'where the bundle is written', 'dist')
    .option('--external <package>', 'a package that is not bundled, for example one with native code', collect, [])
    .option('--json', 'print what was built as JSON')
    .action((files: string[], options: BuildOptions) => build(context, files, options))
}

async function build({ out }: Context, files: string[], { out: folder, external, json }: BuildOptions): Promise<void> {
  const esbuild = await import('esbuild')
  const main = join(folder, 'main.mjs')
  rmSync(main, { force: true })
  mkdirSync(folder, { recursive: true })
  const result = await esbuild.build({
    stdin: { contents: entryOf(files), resolveDir: process.cwd(), sourcefile: 'rivulet-worker.mjs' },
    outfile: main,
    external,
    ...{ bundle: true, platform: 'node', target: 'node20', format: 'esm', sourcemap: 'linked', logLevel: 'silent' },
    banner: { js: commonJsBanner },
  })
  for (const warning of result.warnings) out.write(`${esbuild.formatMessagesSync([warning], { kind: 'warning' }).join('')}\n`)
  out.write(json ? toJsonLine({ main }) : `${main} is built. Now:\n\n  node --enable-source-maps ${main}\n`)
}

function entryOf(files: readonly string[]): string {
  const names = files.map((file, index) => `import * as agents${index} from ${JSON.stringify(resolve(file))}`)
  const modules = files.map((file, index) => `${JSON.stringify(file)}: agents${index}`)
  return [
    ...names,
    `import { runBuiltWorker } from ${JSON.stringify(builtWorker)}`,
    `await runBuiltWorker(process.env, { ${modules.join(', ')} })`,
  ].join('\n')
}

function collect(value: string, earlier: string[]): string[] {
  return [...earlier, value]
}

function checkFile(file: string): string {
  if (isPython(file)) throw new InvalidArgumentError(`${file} needs no build: python3 -m rivulet ${file} runs it`)
  if (!existsSync(file)) throw new InvalidArgumentError(`There is no file ${file}`)
  return file
}
