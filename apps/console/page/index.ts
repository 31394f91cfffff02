/**
 * The console as files and as a server of its own.
 *
 * A build notes the digest of what it was made of.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { digestOf } from '../../../scripts/digest.mjs'

const folder = fileURLToPath(new URL('..', import.meta.url))
const note = join(folder, 'dist', '.made-of')
const sources = ['src', 'public', 'page', 'index.html', 'package.json', '../../packages/client/src', '../../packages/protocol/src']

/** Builds the console if the build is out of date. Returns whether it was. */
export async function buildConsole(): Promise<boolean> {
  const digest = digestOf(folder, sources)
  if (existsSync(note) && readFileSync(note, 'utf8') === digest) return false
  const [{ build }, { viteConfig }] = await Promise.all([import('vite'), import('./vite-config.ts')])
  // A test has another NODE_ENV, by which Vite would build React's development version, which is half as large again.
  const { NODE_ENV: before } = process.env
  process.env.NODE_ENV = 'production'
  await build(viteConfig).finally(() => {
    if (before === undefined) delete process.env.NODE_ENV
    else process.env.NODE_ENV = before
  })
  writeFileSync(note, digest)
  return true
}

export type ConsoleServer = { url: string; close(): Promise<void> }

/** The console with hot reload. What is no page of its own is asked of the API. */
export async function serveConsole({ apiUrl, port }: { apiUrl: string; port: number }): Promise<ConsoleServer> {
  const [{ createServer }, { viteConfig }] = await Promise.all([import('vite'), import('./vite-config.ts')])
  const passedOn = { target: apiUrl, changeOrigin: true }
  const proxy = Object.fromEntries(['/v1', '/docs', '/openapi.json', '/metrics', '/healthz', '/readyz'].map(path => [path, passedOn]))
  const listeners = process.listeners('SIGTERM')
  const server = await createServer({ ...viteConfig, server: { host: '127.0.0.1', port, proxy } })
  // Remove Vite's signal handlers: it would exit at once and leave child processes behind. The CLI decides when this process exits.
  for (const added of process.listeners('SIGTERM')) if (!listeners.includes(added)) process.off('SIGTERM', added)
  await server.listen()
  return { url: server.resolvedUrls?.local[0] ?? '', close: () => server.close() }
}
