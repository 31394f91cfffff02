/**
 * The web console: the files that its build left behind, and its page at every address that it draws itself.
 *
 * Files are looked up with each request, so a console that is built while the server runs is there at once, and one that is not built breaks
 * nothing. Only plain names inside the build's own folder are read.
 */
import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply } from 'fastify'

const builtConsole = fileURLToPath(new URL('../../../console/dist/', import.meta.url))

/** The addresses of the console's own pages. Everything else stays what it is: an API that answers in JSON. */
const pages = ['/', '/tasks', '/tasks/:id', '/agents']

const headers = {
  'content-security-policy': [
    "default-src 'self'",
    "img-src 'self' data: blob:",
    "media-src 'self' data: blob:",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

const contentTypes: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** @param folder where the build is, with a slash at its end */
export function consoleRoutes(app: FastifyInstance, folder: string = builtConsole): void {
  for (const page of pages) app.get(page, { schema: { hide: true } }, (_, reply) => sendPage(reply))

  // Their names change with their content.
  app.get<{ Params: { name: string } }>('/assets/:name', { schema: { hide: true } }, ({ params }, reply) =>
    sendFile(reply, 'assets/', params.name, 'public, max-age=31536000, immutable'),
  )
  app.get('/favicon.svg', { schema: { hide: true } }, (_, reply) => sendFile(reply, '', 'favicon.svg', 'public, max-age=3600'))

  async function sendPage(reply: FastifyReply): Promise<FastifyReply> {
    const page = await read('index.html')
    reply.headers(headers).header('cache-control', 'no-cache').type('text/html; charset=utf-8')
    return reply.send(page ?? notBuilt)
  }

  async function sendFile(reply: FastifyReply, subfolder: '' | 'assets/', name: string, caching: string): Promise<FastifyReply> {
    const type = contentTypes[extname(name)]
    const file = type && /^[\w-][\w.-]*$/.test(name) ? await read(`${subfolder}${name}`) : null
    if (!type || !file) throw new RivuletError('not_found', 'There is no such file')
    return reply.headers(headers).header('cache-control', caching).type(type).send(file)
  }

  async function read(path: string): Promise<Buffer | null> {
    try {
      return await readFile(`${folder}${path}`)
    } catch {
      return null
    }
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
