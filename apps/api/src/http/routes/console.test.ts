import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fastify from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { handleErrors, notFound } from '../errors.ts'
import { rejectFrames } from '../page-headers.ts'
import { consoleRoutes } from './console.ts'

function serve({ isBuilt }: { isBuilt: boolean }) {
  const folder = `${mkdtempSync(join(tmpdir(), 'rivulet-console-'))}/`
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const dist = `${folder}dist/`
  writeFileSync(`${folder}secret.js`, 'secret')
  if (isBuilt) {
    mkdirSync(`${dist}assets`, { recursive: true })
    writeFileSync(`${dist}index.html`, '<title>the console</title>')
    writeFileSync(`${dist}assets/index-a1.js`, 'script')
    writeFileSync(`${dist}assets/notes.txt`, 'notes')
    writeFileSync(`${dist}favicon.svg`, '<svg/>')
  }
  const app = fastify()
  handleErrors(app)
  rejectFrames(app)
  app.setNotFoundHandler(notFound)
  consoleRoutes(app, dist)
  return app
}

describe('a console that is built', () => {
  test('is the same page at every address of its own, asked for anew each time, and loads nothing from elsewhere', async () => {
    const app = serve({ isBuilt: true })
    for (const url of ['/', '/tasks', '/tasks/0197-a', '/agents', '/?status=running']) {
      const { statusCode, body, headers } = await app.inject(url)
      expect([url, statusCode, body]).toEqual([url, 200, '<title>the console</title>'])
      expect(headers['content-type']).toBe('text/html; charset=utf-8')
      expect(headers['cache-control']).toBe('no-cache')
      expect(headers['content-security-policy']).toMatch(/^default-src 'self'; .*frame-ancestors 'none'/)
      expect(headers['x-content-type-options']).toBe('nosniff')
    }
  })

  test('has files that may be kept for ever', async () => {
    const { statusCode, body, headers } = await serve({ isBuilt: true }).inject('/assets/index-a1.js')
    expect([statusCode, body, headers['content-type']]).toEqual([200, 'script', 'text/javascript; charset=utf-8'])
    expect(headers['cache-control']).toContain('immutable')
  })

  test.each([
    '/assets/..%2f..%2fsecret.js',
    '/assets/../../secret.js',
    '/assets/%2e%2e%2f%2e%2e%2fsecret.js',
    '/assets/..\\..\\secret.js',
    '/assets/notes.txt',
    '/assets/',
    '/assets/missing.js',
    '/index.html',
    '/v1/nothing',
    '/metrics/nothing',
    '/internal/nothing',
    '/tasks/a/b',
  ])('does not answer %s', async url => {
    const { statusCode, body, headers } = await serve({ isBuilt: true }).inject(url)
    expect([statusCode, headers['content-type']]).toEqual([404, 'application/json; charset=utf-8'])
    expect(body).not.toContain('secret')
  })
})

test('a console that is not built is a page that says how to build it', async () => {
  const app = serve({ isBuilt: false })
  const { statusCode, body, headers } = await app.inject('/')
  expect([statusCode, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
  expect(body).toContain('npm run build:console')
  expect((await app.inject('/assets/index-a1.js')).statusCode).toBe(404)
})
