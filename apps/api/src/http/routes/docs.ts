/**
 * Serves the description of the API: `/openapi.json` for programs, and Swagger UI at `/docs` for people.
 *
 * Swagger UI's files are served from memory, and the description is serialised once, so neither costs a copy per request.
 */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { describeApi } from '../openapi.ts'
import { pageHeaders } from '../page-headers.ts'
import { createStaticFile, createStaticFiles, type StaticFile, sendStatic } from '../static-files.ts'

// In the published package the files lie in `swagger-ui`, because npm packs no node_modules.
const packed = fileURLToPath(new URL('../../../../../swagger-ui/', import.meta.url))
const swaggerUi = existsSync(packed)
  ? packed
  : fileURLToPath(new URL('../../../../../node_modules/@fastify/swagger-ui/static/', import.meta.url))

/** Swagger UI has its icons as data. */
const headers = pageHeaders({ 'img-src': "'self' data:" })

export function docsRoutes(app: FastifyInstance): void {
  const files = createStaticFiles(swaggerUi)
  const page = createStaticFile('text/html; charset=utf-8', pageText)
  const start = createStaticFile('text/javascript; charset=utf-8', startText)
  const options = { schema: { hide: true } }
  let description: Promise<StaticFile> | null = null

  for (const url of ['/docs', '/docs/']) app.get(url, options, async (_, reply) => sendStatic(reply.headers(headers), await page))
  app.get('/docs/start.js', options, async (_, reply) => sendStatic(reply.headers(headers), await start))
  app.get<{ Params: { name: string } }>('/docs/static/:name', options, async ({ params }, reply) => {
    const file = await files.find(params.name)
    if (!file) throw new RivuletError('not_found', 'No such file')
    return sendStatic(reply.headers(headers).header('cache-control', 'public, max-age=3600'), file)
  })
  app.get('/openapi.json', options, async (_, reply) => {
    // With the first request, when all routes are there.
    description ??= createStaticFile('application/json; charset=utf-8', JSON.stringify(describeApi(app)))
    return sendStatic(reply, await description)
  })
}

const pageText = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Rivulet: the API</title>
<link rel="icon" type="image/png" href="/docs/static/favicon-32x32.png" sizes="32x32">
<link rel="stylesheet" href="/docs/static/swagger-ui.css">
<link rel="stylesheet" href="/docs/static/index.css">
<div id="swagger-ui"></div>
<script src="/docs/static/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</html>
`

const startText = `SwaggerUIBundle({ dom_id: '#swagger-ui', url: '/openapi.json', deepLinking: true, validatorUrl: null })
`
