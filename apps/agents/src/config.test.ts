import { expect, test } from 'vitest'
import { readConfig } from './config.ts'

test('what is not set has its default, and what is set empty counts as not set', () => {
  const config = readConfig({ REDIS_URL: 'redis://127.0.0.1', RIVULET_WORKER_KEY: '', WORKER_CONCURRENCY: '' })
  expect(config).toMatchObject({
    RIVULET_URL: 'http://127.0.0.1:4000',
    WORKER_CONCURRENCY: 20,
    HEARTBEAT_MS: 5_000,
    LOG_LEVEL: 'info',
  })
  expect(config.RIVULET_WORKER_KEY).toBeUndefined()
})

test('everything that is wrong is said in one list', () => {
  const wrong = () => readConfig({ REDIS_URL: 'http://here', WORKER_CONCURRENCY: 'many', HEARTBEAT_MS: '0', LOG_LEVEL: 'loud' })
  expect(wrong).toThrow(/REDIS_URL: must be a redis:\/\/ URL\n.*WORKER_CONCURRENCY.*\n.*HEARTBEAT_MS.*\n.*LOG_LEVEL/)
  expect(() => readConfig({ HEARTBEAT_MS: '0' })).toThrow(/HEARTBEAT_MS.*\n.*REDIS_URL: is required, unless RIVULET_TRANSPORT is http/)
})

test('a worker over HTTP needs no Redis, and a transport that does not exist is refused', () => {
  expect(readConfig({ RIVULET_TRANSPORT: 'http' })).not.toHaveProperty('REDIS_URL')
  expect(() => readConfig({ REDIS_URL: 'redis://here', RIVULET_TRANSPORT: 'https' })).toThrow(/RIVULET_TRANSPORT: .*"redis"\|"http"/)
})

test('a worker does not start with an API on another machine without TLS, because replies to claims have secrets', () => {
  const read = (RIVULET_URL: string, own = {}) => readConfig({ REDIS_URL: 'redis://127.0.0.1', RIVULET_URL, ...own })
  for (const url of [
    'http://127.0.0.1:4000',
    'http://[::1]:4000',
    'http://localhost',
    'https://api.example',
    'https://a, http://127.0.0.1',
  ])
    expect(read(url).RIVULET_URL).toBe(url)
  for (const url of [
    'http://api.example:4001',
    'https://a,http://10.0.0.1',
    'http://127.0.0.1.evil.example',
    'http://localhost@evil.example',
  ]) {
    expect(() => read(url)).toThrow(/RIVULET_URL: .*ALLOW_PLAINTEXT=on/)
    expect(read(url, { ALLOW_PLAINTEXT: 'on' }).RIVULET_URL).toBe(url)
  }
})

test('files with agents are separated by commas', () => {
  const filesIn = (list: string) => readConfig({ REDIS_URL: 'redis://127.0.0.1', AGENT_FILES: list }).AGENT_FILES
  expect(filesIn('')).toEqual([])
  expect(filesIn('a.ts, b/c.ts,')).toEqual(['a.ts', 'b/c.ts'])
})
