import { expect, test } from 'vitest'
import { listeningUrl } from './listening-url.ts'

test.each([
  ['127.0.0.1', 'http://127.0.0.1:4000'],
  ['localhost', 'http://localhost:4000'],
  ['0.0.0.0', 'http://127.0.0.1:4000'],
  ['::1', 'http://[::1]:4000'],
  ['::', 'http://[::1]:4000'],
])('what listens on %s is reached at %s', (host, url) => {
  expect(listeningUrl(host, 4_000)).toBe(url)
  expect(new URL(url).port).toBe('4000')
})
