/**
 * Serves the web console: the files of its build, and its page at every path that the page handles itself.
 *
 * The files are read on request, so a build that finishes while the server runs is served at once, and a missing build breaks nothing.
 */
import { fileURLToPath } from 'node:url'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { pageHeaders } from '../page-headers.ts'
import { createStaticFile, createStaticFiles, type StaticFiles, sendStatic } from '../static-files.ts'

const builtConsole = fileURLToPath(new URL('../../../../console/dist/', import.meta.url))

/** The paths of the console's pages. A browser that opens another path gets the page, too, which shows that nothing is there. */
export const consolePages = [
  '/',
  '/tasks',
  '/tasks/:id',
  '/agents',
  '/workers',
  '/errors',
  '/usage',
  '/schedules',
  '/keys',
  '/audit',
  '/dashboard',
  '/waits',
]

const headers = pageHeaders({ 'img-src': "'self' data: blob:", 'media-src': "'self' data: blob:" })

export type ConsolePage = (reply: FastifyReply) => Promise<FastifyReply>

/** Whether a person opens a path that no route has, as opposed to a program that calls it. */
export function wantsPage({ method, url, headers: { accept = '' } }: FastifyRequest): boolean {
  return method === 'GET' && accept.includes('text/html') && !/^\/(v1|internal|assets|docs|metrics|healthz|readyz)(\/|$|\?)/.test(url)
}

/** @param folder where the build is, with a slash at its end. Returns how to send the page. */
export function consoleRoutes(app: FastifyInstance, folder: string = builtConsole): ConsolePage {
  const files = createStaticFiles(folder)
  const assets = createStaticFiles(`${folder}assets/`)
  const hint = createStaticFile('text/html; charset=utf-8', notBuilt)
  for (const page of consolePages) app.get(page, { schema: { hide: true } }, (_, reply) => sendPage(reply))

  // Their names change with their content.
  app.get<{ Params: { name: string } }>('/assets/:name', { schema: { hide: true } }, ({ params }, reply) =>
    sendFile(reply, assets, params.name, 'public, max-age=31536000, immutable'),
  )
  app.get('/favicon.svg', { schema: { hide: true } }, (_, reply) => sendFile(reply, files, 'favicon.svg', 'public, max-age=3600'))
  return sendPage

  async function sendPage(reply: FastifyReply): Promise<FastifyReply> {
    const page = await files.find('index.html')
    return sendStatic(reply.headers(headers).header('cache-control', 'no-cache'), page ?? (await hint))
  }

  async function sendFile(reply: FastifyReply, from: StaticFiles, name: string, caching: string): Promise<FastifyReply> {
    const file = await from.find(name)
    if (!file) throw new RivuletError('not_found', 'No such file')
    return sendStatic(reply.headers(headers).header('cache-control', caching), file)
  }
}

const notBuilt = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Rivulet</title>
<h1>Rivulet</h1>
<p>The API is running. The console is not built: <code>npm run build:console</code> builds it, and <code>npm start</code> does so by itself.</p>
<p>The API is described at <a href="/docs">/docs</a>.</p>
</html>
`
