import { checkHealth } from '@rivulet/contract/operations'
import fastify from 'fastify'
import { describe, expect, test } from 'vitest'
import { handleErrors } from '../http/errors.ts'
import { checkHosts } from './allowed-hosts.ts'

function ask(host: string, url: string, allowed: string[]) {
  const app = fastify()
  handleErrors(app)
  checkHosts(app, new Set(allowed))
  app.get('/', async () => 'hello')
  app.get('/healthz', { config: { contract: checkHealth } }, async () => 'well')
  return app.inject({ url, headers: { host } })
}

describe('where hosts are listed, a request for', () => {
  test.each([
    'api.example.com',
    'API.example.com:8443',
    'api.example.com.',
    '10.1.2.3:4000',
    '127.0.0.1',
    '[::1]:4000',
    'localhost:4000',
    'a.localhost',
  ])('%s is answered', async host => {
    expect((await ask(host, '/', ['api.example.com'])).statusCode).toBe(200)
  })

  test.each([
    'evil.example',
    'api.example.com.evil.example',
    'sub.api.example.com',
    'api',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'api.example.com@evil.example',
  ])('%s is refused, unless it asks for health', async host => {
    const { statusCode, body } = await ask(host, '/', ['api.example.com'])
    expect([statusCode, JSON.parse(body).error]).toEqual([
      403,
      { code: 'forbidden', message: expect.stringContaining('ALLOWED_HOSTS'), requestId: expect.any(String) },
    ])
    expect(body).not.toContain('evil')
    expect((await ask(host, '/healthz', ['api.example.com'])).statusCode).toBe(200)
  })

  test('an address that is not there is refused in the same way', async () => {
    expect((await ask('evil.example', '/nowhere', ['api.example.com'])).statusCode).toBe(403)
  })
})

test('where no hosts are listed, any name will do', async () => {
  expect((await ask('any.example', '/', [])).statusCode).toBe(200)
})
