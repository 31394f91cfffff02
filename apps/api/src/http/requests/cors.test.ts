import fastify from 'fastify'
import { expect, test } from 'vitest'
import { allowOrigins } from './cors.ts'

async function ask(origin: string | undefined, method: 'GET' | 'OPTIONS' = 'GET', origins = ['https://app.example.com']) {
  const app = fastify()
  allowOrigins(app, new Set(origins))
  app.get('/', async () => 'hello')
  const headers = { ...(origin && { origin }), ...(method === 'OPTIONS' && { 'access-control-request-method': 'GET' }) }
  return app.inject({ method, url: '/', headers })
}

test('a page of an origin on the list may read the answer, without credentials', async () => {
  const { headers, body } = await ask('https://app.example.com')
  expect(body).toBe('hello')
  expect(headers).toMatchObject({ 'access-control-allow-origin': 'https://app.example.com', vary: 'origin' })
  expect(headers['access-control-allow-credentials']).toBeUndefined()
})

test('the preflight lists what its browser may send', async () => {
  const { statusCode, headers } = await ask('https://app.example.com', 'OPTIONS')
  expect(statusCode).toBe(204)
  expect(headers).toMatchObject({
    'access-control-allow-origin': 'https://app.example.com',
    'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
    'access-control-allow-headers': expect.stringContaining('last-event-id'),
  })
  // Those of OpenAI's SDK and of MCP's, too. The asterisk does not stand for the key.
  expect(String(headers['access-control-allow-headers']).split(', ')).toEqual(expect.arrayContaining(['*', 'authorization']))
})

test.each([undefined, 'null', 'https://app.example.com.evil.org', 'http://app.example.com', 'https://APP.example.com'])(
  'a page of %s gets no CORS header',
  async origin => {
    for (const method of ['GET', 'OPTIONS'] as const) {
      const { headers } = await ask(origin, method)
      expect(Object.keys(headers).filter(name => name.startsWith('access-control'))).toEqual([])
    }
  },
)

test('without a list there is nothing to see', async () => {
  expect((await ask('https://app.example.com', 'GET', [])).headers.vary).toBeUndefined()
})
