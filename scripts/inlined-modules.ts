/**
 * Modules that read a file beside them, and what a build puts in their place: the same exports, with the text of the file. A bundler moves code and
 * leaves files behind, so nothing that is built looks for a file of these.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

export const inlinedModules: Record<string, (root: string) => Promise<string>> = {
  'packages/broker/src/lua-source.ts': inlineLua,
  'packages/worker/src/lease-thread/thread-url.ts': inlineThread,
}

async function inlineLua(root: string): Promise<string> {
  const folder = join(root, 'packages/broker/src/lua')
  const texts = readdirSync(folder).map(file => [file.replace(/\.lua$/, ''), readFileSync(join(folder, file), 'utf8')])
  return `const texts = ${JSON.stringify(Object.fromEntries(texts), null, 2)}\nexport const readLua = name => texts[name]\n`
}

async function inlineThread(root: string): Promise<string> {
  const entry = join(root, 'packages/worker/src/lease-thread/thread.mjs')
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
  })
  const url = `data:text/javascript,${encodeURIComponent(outputFiles[0]?.text ?? '')}`
  return `export const threadUrl = new URL(${JSON.stringify(url)})\n`
}
