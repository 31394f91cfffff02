/** The logins of Redis in docs/security.md: with them, turns run and nothing is refused that they need; everything else is refused. */
import { defineAgent } from '@rivulet/worker'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { documentedLogins, refusalsIn } from '../support/engines/redis/redis-logins.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type ApiProcess, type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const suffix = `of-test-${process.pid}`
/** One, or those of a cluster. */
const servers = inject('redisUrl')
  .replace('redis://', '')
  .split(',')
  .map(address => new Redis(`redis://${address}`))
const [admin] = servers as [Redis]
/** Selectors, which separate what a worker may do with a queue and with a log, came with Redis 7. Every Valkey has them. */
const hasSelectors = /valkey_version:|redis_version:([7-9]|\d\d)/.test(await admin.info('server'))

let platform: Platform
let api: ApiProcess
let prefix: string

afterAll(async () => {
  await platform?.close()
  for (const { name } of logins()) await onEach('ACL', 'DELUSER', name)
  for (const server of servers) server.disconnect()
})

describe.skipIf(!hasSelectors)('with the logins of the document (needs Redis 7 or Valkey)', () => {
  beforeAll(async () => {
    platform = await startPlatform({ apis: 0, workers: 0 })
    prefix = platform.keys.processChannel.replace(/:processes$/, '')
    expect(logins().map(({ name }) => name)).toEqual(expect.arrayContaining([nameOf('api'), nameOf('worker')]))
    for (const { name, rules } of logins()) await onEach('ACL', 'SETUSER', name, 'reset', ...rules)
    api = await platform.startApi({ env: { REDIS_URL: urlOf('api') } })
    await platform.startWorker({ REDIS_URL: urlOf('worker'), RIVULET_TRANSPORT: 'redis' })
  })

  test('turns run at once, later and again, are watched, canceled and removed, and Redis refuses nothing of that', async () => {
    const client = platform.clientOf(api)
    const run = async (body: object) => (await client.finishedTask(body)).turns.map(({ status }) => status)
    const ended = await Promise.all([
      ...Array.from({ length: 30 }, () => run({ agent: 'echo', input: 'hello' })),
      run({ agent: 'echo', input: 'later', delayMs: 300 }),
      run({ agent: 'scripted', params: { attempts: { 1: [{ throw: 'no' }], 2: [] } } }),
    ])
    expect(new Set(ended.flat())).toEqual(new Set(['completed']))
    const { task } = await client.createTask({ agent: 'scripted', params: { steps: [{ sleep: 600_000 }] } })
    await client.waitForTask(task.id, ({ task: { status } }) => status === 'running')
    const watching = fetch(`${api.url}/v1/tasks/${task.id}/events`).then(response => response.text())
    await client.cancel(task.id)
    expect(await watching).toContain('"canceled"')
    expect((await client.remove(task.id)).status).toBe(204)
    await until('its log is gone', async () => (await platform.redis.exists(platform.keys.stream(task.id))) === 0)
    const refused = (await onEach('ACL', 'LOG', '128')).flatMap(refusalsIn)
    expect(refused.filter(entry => entry.includes(suffix))).toEqual([])
  })

  test('Redis refuses a worker what it does not need, and both logins what is not theirs', async () => {
    const { id } = (await platform.clientOf(api).finishedTask({ agent: 'echo', input: 'words' })).task
    const [log, state, channel] = [platform.keys.stream(id), platform.keys.state(id), platform.keys.channel(id)]
    // The others of a cluster would only name the one that has the log.
    const owners = await Promise.all(servers.map(server => server.exists(log).catch(() => 0)))
    const portOfLog = servers[owners.indexOf(1)]?.options.port
    const ofBoth = [
      ...[
        ['KEYS', '*'],
        ['SCAN', '0'],
        ['CONFIG', 'GET', '*'],
        ['ACL', 'LIST'],
        ['CLIENT', 'LIST'],
        ['MONITOR'],
        ['GET', 'key-of-another-program'],
      ],
      ...[
        ['SUBSCRIBE', 'channel-of-another-program'],
        ['EVAL', 'return redis.call("KEYS", "*")', '0'],
      ],
    ]
    const ofWorker = [
      ...[
        ['XRANGE', log, '-', '+'],
        ['XREAD', 'STREAMS', log, '0'],
        ['XREVRANGE', log, '+', '-'],
        ['DUMP', log],
        ['DEL', log],
        ['HGETALL', state],
      ],
      ...[
        ['SUBSCRIBE', channel],
        ['PSUBSCRIBE', '*'],
        ['SSUBSCRIBE', channel],
        ['PUBLISH', platform.keys.processChannel, '{}'],
      ],
      ['EVAL', 'return redis.call("XRANGE", KEYS[1], "-", "+")', '1', log],
    ]
    for (const [login, commands] of [
      ['api', ofBoth],
      ['worker', [...ofBoth, ...ofWorker]],
    ] as const) {
      const redis = new Redis({ port: Number(portOfLog), ...credentialsOf(login) })
      const refusals = await Promise.all(
        commands.map(async ([name = '', ...args]) => [name, await redis.call(name, ...args).catch(String)]),
      )
      redis.disconnect()
      expect([login, refusals]).toEqual([
        login,
        commands.map(([name]) => [name, expect.stringMatching(/NOPERM|can't run this command|No permissions|can't access/i)]),
      ])
      // Only asked about, because the server is shared with other tests.
      for (const command of [['FLUSHALL'], ['FLUSHDB'], ['SHUTDOWN'], ['DEBUG', 'SLEEP', '0'], ['REPLICAOF', 'NO', 'ONE']])
        expect(await admin.call('ACL', 'DRYRUN', nameOf(login), ...command)).toMatch(/no permissions/i)
    }
    expect(await platform.redis.exists(log)).toBe(1)
  })

  test('a worker whose login names the queues of its agents runs their turns, and Redis refuses it the queue of another agent', async () => {
    const login = logins().find(({ name }) => name === nameOf('worker'))
    const username = `${nameOf('worker')}-of-mine`
    const queue = (agent: string) => `${platform.keys.queuePrefix}:${agent}:`
    const rules = (login?.rules ?? []).map(rule => rule.replace(`~${platform.keys.queuePrefix}:*`, `~${queue('mine')}*`))
    expect(rules).not.toEqual(login?.rules)
    await onEach('ACL', 'SETUSER', username, 'reset', ...rules)
    const redisUrl = urlFor(username, login?.password ?? '')
    const client = platform.clientOf(api)
    await startOwnWorker({ ...platform, url: api.url, client }, [defineAgent('mine', turn => turn.send('done').then(() => {}))], {
      ...{ redisUrl, transport: 'redis' },
    })
    expect((await client.finishedTask({ agent: 'mine' })).turns).toMatchObject([{ status: 'completed' }])
    const dryRun = (key: string) => admin.call('ACL', 'DRYRUN', username, 'LPOP', key)
    expect([await dryRun(`${queue('mine')}wait`), await dryRun(`${queue('echo')}wait`)]).toEqual([
      'OK',
      expect.stringMatching(/access|permissions/),
    ])
    expect((await onEach('ACL', 'LOG', '128')).flatMap(refusalsIn).filter(entry => entry.includes(username))).toEqual([])
    await onEach('ACL', 'DELUSER', username)
  })
})

function onEach(command: string, ...args: string[]): Promise<unknown[]> {
  return Promise.all(servers.map(server => server.call(command, ...args)))
}

/** The lines as of this test: with its prefix, and with names that no other test has. */
function logins(): { name: string; password: string; rules: string[] }[] {
  return documentedLogins(prefix).map(({ name, password, rules }) => ({
    ...{ name: `${name}-${suffix}`, password },
    rules: Array.from(rules.matchAll(/\([^)]*\)|\S+/g), ([rule]) => rule),
  }))
}

function nameOf(login: 'api' | 'worker'): string {
  return `rivulet-${login}-${suffix}`
}

function credentialsOf(login: 'api' | 'worker'): { username: string; password: string } {
  const username = nameOf(login)
  return { username, password: logins().find(({ name }) => name === username)?.password ?? '' }
}

function urlOf(login: 'api' | 'worker'): string {
  const { username, password } = credentialsOf(login)
  return urlFor(username, password)
}

function urlFor(username: string, password: string): string {
  return inject('redisUrl').replace(/^redis:\/\/([^@]*@)?/, `redis://${username}:${password}@`)
}
