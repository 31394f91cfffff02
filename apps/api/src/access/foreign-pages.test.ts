import fastify from 'fastify'
import { expect, test } from 'vitest'
import { handleErrors } from '../http/errors.ts'
import { rejectForeignPages } from './foreign-pages.ts'

async function ask(headers: Record<string, string>, method: 'GET' | 'POST' | 'DELETE' = 'POST') {
  const app = fastify()
  handleErrors(app)
  rejectForeignPages(app, new Set(['https://app.example']))
  app.route({ method: ['GET', 'POST', 'DELETE'], url: '/', handler: async () => 'done' })
  const { statusCode, body } = await app.inject({ method, url: '/', headers: { host: 'localhost:4000', ...headers } })
  return statusCode === 200 ? 'done' : (JSON.parse(body) as { error: { code: string } }).error.code
}

test.each([
  ['a program', {}],
  ['the page of this API', { 'sec-fetch-site': 'same-origin', origin: 'http://localhost:4000' }],
  ['the page of this API behind a proxy', { 'sec-fetch-site': 'same-origin', origin: 'https://elsewhere.example' }],
  ['the page of this API in an old browser', { origin: 'http://localhost:4000' }],
  ['an address that was typed in', { 'sec-fetch-site': 'none' }],
  ['a page of an origin on the list', { 'sec-fetch-site': 'cross-site', origin: 'https://app.example' }],
  ['such a page in an old browser', { origin: 'https://app.example' }],
])('%s may change something', async (_, headers) => {
  expect([await ask(headers), await ask(headers, 'DELETE')]).toEqual(['done', 'done'])
})

test.each([
  ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
  ['another port of this machine', { 'sec-fetch-site': 'same-site', origin: 'http://localhost:3000' }],
  ['a site that hides its origin', { 'sec-fetch-site': 'cross-site' }],
  ['another site in an old browser', { origin: 'https://evil.example' }],
  ['another port in an old browser', { origin: 'http://localhost:3000' }],
  ['a frame that hides its origin', { origin: 'null' }],
  ['an origin that begins like one on the list', { 'sec-fetch-site': 'cross-site', origin: 'https://app.example.evil.org' }],
])('a page of %s may read, as far as its browser lets it, and change nothing', async (_, headers) => {
  expect([await ask(headers), await ask(headers, 'DELETE'), await ask(headers, 'GET')]).toEqual(['forbidden', 'forbidden', 'done'])
})
