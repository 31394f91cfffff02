import { describe, expect, test } from 'vitest'
import { parseRedisUrl, whyNotRedisUrl } from './redis-url.ts'

const local = { host: '127.0.0.1', port: 6379 }

test.each([
  ['redis://', { isTls: false, login: {}, addresses: [local] }],
  ['redis://127.0.0.1', { isTls: false, login: {}, addresses: [local] }],
  [
    'rediss://:p%40ss@cache.example:6380/2?family=6',
    { isTls: true, login: { password: 'p@ss' }, addresses: [{ host: 'cache.example', port: 6380 }] },
  ],
  ['redis://me:a:b@c@[::1]:7000', { isTls: false, login: { username: 'me', password: 'a:b@c' }, addresses: [{ host: '::1', port: 7000 }] }],
  ['redis://[::1]', { isTls: false, login: {}, addresses: [{ host: '::1', port: 6379 }] }],
])('%s is one server', (url, expected) => {
  expect(parseRedisUrl(url)).toEqual({ kind: 'single', ...expected })
})

test('several servers are a cluster; the login and TLS hold for all', () => {
  expect(parseRedisUrl('rediss://me:secret,1@10.0.0.1:7000,cache,[fd00::1]:7001')).toEqual({
    ...{ kind: 'cluster', isTls: true, login: { username: 'me', password: 'secret,1' } },
    addresses: [
      { host: '10.0.0.1', port: 7000 },
      { host: 'cache', port: 6379 },
      { host: 'fd00::1', port: 7001 },
    ],
  })
})

describe('Sentinels', () => {
  test('have the master as the path, a port of their own by default, and a login of their own', () => {
    const url = 'rediss+sentinel://me:secret@10.0.0.1,10.0.0.2:5000/my%20master?sentinelUsername=watch&sentinelPassword=a%3Db=c'
    expect(parseRedisUrl(url)).toEqual({
      ...{ kind: 'sentinel', isTls: true, login: { username: 'me', password: 'secret' }, masterName: 'my master' },
      addresses: [
        { host: '10.0.0.1', port: 26379 },
        { host: '10.0.0.2', port: 5000 },
      ],
      sentinelLogin: { username: 'watch', password: 'a=b=c' },
    })
  })

  test('one is enough, and the servers may need no login', () => {
    expect(parseRedisUrl('redis+sentinel://watcher/main')).toEqual({
      ...{ kind: 'sentinel', isTls: false, login: {}, masterName: 'main', sentinelLogin: {} },
      addresses: [{ host: 'watcher', port: 26379 }],
    })
  })
})

test.each([
  ['http://secret', 'must be a redis:// URL'],
  ['redis+sentinels://secret/main', 'must be a redis:// URL'],
  ['redis+sentinel://secret:26379', 'must end with the name of the master'],
  ['redis+sentinel://secret:26379/', 'must end with the name of the master'],
  ['redis+sentinel://secret:26379/main/2', 'must end with the name of the master'],
  ['redis+sentinel:///main', 'has an empty host'],
  ['redis+sentinel://secret,,other/main', 'has an empty host'],
  ['redis://secret,', 'has an empty host'],
  ['redis://secret,:6379', 'has an empty host'],
  ['redis://secret:none', 'has a port that is not a number'],
  ['redis://secret:0', 'has a port that is not a number'],
  ['redis://10.0.0.1,secret:70000', 'has a port that is not a number'],
  ['redis://?host=secret', 'may not have the parameter host'],
  ['redis://:%secret@host', 'has a user or password that is not percent-encoded'],
  ['redis+sentinel://host/main?sentinelPassword=%secret', 'has a sentinelPassword that is not percent-encoded'],
  ['redis+sentinel://host/main?password=secret', 'may have the parameters sentinelUsername and sentinelPassword only'],
])('%s %s, without repeating a part of it', (url, reason) => {
  expect(whyNotRedisUrl(url)).toContain(reason)
  expect(whyNotRedisUrl(url)).not.toContain('secret')
  expect(() => parseRedisUrl(url)).toThrow(`The Redis URL ${reason}`)
})
