import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { Queue, Worker } from 'bullmq'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { connect, guardianOf, kinds, makeFolder, shareFolder, start } from '../../test/scope.ts'
import { commandOf, pidOf } from '../guardian/process-name.ts'
import { type Engine, startRedis } from '../index.ts'

for (const { kind, isMissing, label } of kinds.filter(({ name }) => name === 'redis')) {
  describe.skipIf(isMissing)(label, () => {
    const dataDir = shareFolder()
    let engine: Engine
    let port: number
    let password: string

    beforeAll(async () => {
      engine = await startRedis({ dataDir, prefer: kind })
      port = Number(new URL(engine.url).port)
      password = new URL(engine.url).password
    })
    afterAll(() => engine.stop())

    test('asks for a password, and rejects a client without it', async () => {
      expect(password).toMatch(/^[0-9a-f]{36}$/)
      await expect(connect({ url: `redis://127.0.0.1:${port}` }).get('key')).rejects.toThrow('NOAUTH')
      await expect(connect({ url: `redis://:guess@127.0.0.1:${port}` }).get('key')).rejects.toThrow('WRONGPASS')
      expect(await connect(engine).ping()).toBe('PONG')
    })

    test('no other user can read its files, and no command line shows its password', async () => {
      await connect(engine).set('key', 'value')
      const folder = join(dataDir, 'redis')
      expect(statSync(folder).mode & 0o777).toBe(0o700)
      expect(readFileSync(join(folder, 'password'), 'utf8')).toBe(password)
      const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
      expect(files.map(({ name }) => name)).toContain('password')
      for (const { parentPath, name } of files) expect([name, statSync(join(parentPath, name)).mode & 0o077]).toEqual([name, 0])
      for (const pid of [engine.pid ?? 0, pidOf(guardianOf(dataDir, 'redis') ?? '0@')]) {
        expect(commandOf(pid)).not.toBe('')
        expect(commandOf(pid)).not.toContain(password)
      }
    })

    test('never evicts', async () => {
      expect(await connect(engine).config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction'])
    })

    test('runs Lua, and survives Lua that fails', async () => {
      const client = connect(engine)
      const script = "redis.call('SET', KEYS[1], ARGV[1]) return {redis.call('GET', KEYS[1]), #KEYS, cjson.encode({a = 1})}"
      expect(await client.eval(script, 1, 'lua', 'value')).toEqual(['value', 1, '{"a":1}'])
      await expect(client.eval("error('on purpose')", 0)).rejects.toThrow('on purpose')
      await expect(client.eval("return redis.call('INCR', KEYS[1])", 1, 'lua')).rejects.toThrow('not an integer')
      expect(await client.eval("local ok = pcall(error, 'x') return tostring(ok)", 0)).toBe('false')
    })

    test('a blocked reader is woken by an entry, and returns at its timeout', async () => {
      const [reader, writer] = [connect(engine), connect(engine)]
      const waiting = reader.xread('BLOCK', 30_000, 'STREAMS', 'stream', '0-0')
      await blockedClients(writer, 1)
      await writer.xadd('stream', '1-1', 'field', 'value')
      expect(await waiting).toEqual([['stream', [['1-1', ['field', 'value']]]]])
      expect(await reader.xread('BLOCK', 50, 'STREAMS', 'stream', '1-1')).toBeNull()
    })

    test('a consumer group gives an entry to one consumer, and to another when the first does not acknowledge', async () => {
      const client = connect(engine)
      await client.xgroup('CREATE', 'jobs', 'group', '0', 'MKSTREAM')
      await client.xadd('jobs', '1-1', 'n', '1')
      const entry = ['1-1', ['n', '1']]
      expect(await client.xreadgroup('GROUP', 'group', 'first', 'STREAMS', 'jobs', '>')).toEqual([['jobs', [entry]]])
      expect(await client.xreadgroup('GROUP', 'group', 'second', 'STREAMS', 'jobs', '>')).toBeNull()
      expect((await client.xautoclaim('jobs', 'group', 'second', 0, '0'))[1]).toEqual([entry])
      expect(await client.xack('jobs', 'group', '1-1')).toBe(1)
    })

    test('publishes to every subscriber', async () => {
      const subscribers = [connect(engine), connect(engine)]
      const received = subscribers.map(subscriber => once(subscriber, 'message'))
      for (const subscriber of subscribers) await subscriber.subscribe('channel')
      expect(await connect(engine).publish('channel', 'hello')).toBe(2)
      expect(await Promise.all(received)).toEqual([1, 2].map(() => ['channel', 'hello']))
    })

    test('BullMQ adds, delays and processes jobs, and recovers one whose worker died', async () => {
      const connection = { host: '127.0.0.1', port, password, maxRetriesPerRequest: null }
      const queue = new Queue('queue', { connection })
      const dead = new Worker('queue', null, { connection, lockDuration: 100, autorun: false })
      queue.on('error', () => {})
      dead.on('error', () => {})
      await queue.add('lost', {})
      // Taken and never finished: its lock expires.
      expect((await dead.getNextJob('token'))?.name).toBe('lost')
      await queue.add('later', {}, { delay: 50 })
      await queue.add('now', {})

      const stalled: string[] = []
      const done: string[] = []
      const worker = new Worker('queue', async job => done.push(job.name), { connection, stalledInterval: 100 })
      worker.on('error', () => {})
      worker.on('stalled', id => stalled.push(id))
      while (done.length < 3) await once(worker, 'completed')
      expect(done.sort()).toEqual(['later', 'lost', 'now'])
      expect(stalled).toHaveLength(1)
      await Promise.all([queue.close(), dead.close(), worker.close()])
    })

    test('serves 12,000 connections, twenty at a time', async () => {
      for (let round = 0; round < 600; round++) await Promise.all(Array.from({ length: 20 }, () => pingOnce(port, password)))
      expect(await connect(engine).ping()).toBe('PONG')
    })

    test('accepts 64 MB of pipelined commands from a client that reads no reply before the end', async () => {
      const value = 'x'.repeat(1_000)
      const commands = Buffer.from(`*2\r\n$4\r\nECHO\r\n$1000\r\n${value}\r\n`.repeat(1_024))
      const replies = Buffer.from(`$1000\r\n${value}\r\n`.repeat(1_024))
      const socket = await openSocket(port, password)
      socket.pause()
      for (let megabyte = 0; megabyte < 64; megabyte++) {
        if (!socket.write(commands)) await once(socket, 'drain')
      }
      // Other clients are served meanwhile.
      expect(await connect(engine).ping()).toBe('PONG')
      const expected = createHash('sha256')
      for (let megabyte = 0; megabyte < 64; megabyte++) expected.update(replies)
      expect(await hashOf(socket, replies.length * 64)).toBe(expected.digest('hex'))
    })

    test('replies to a client that sends all its commands and closes its side', async () => {
      const socket = await openSocket(port, password)
      socket.end('SET half open\r\nGET half\r\n')
      expect((await socket.toArray()).join('')).toBe('+OK\r\n$4\r\nopen\r\n')
    })

    test('a client that is sent away gets its last reply', async () => {
      const socket = await openSocket(port, password)
      socket.write('PING\r\nQUIT\r\n')
      expect((await socket.toArray()).join('')).toBe('+PONG\r\n+OK\r\n')
    })
  })
}

test('a folder that an earlier version left open is closed, and keeps its password from then on', async () => {
  const dataDir = makeFolder()
  mkdirSync(join(dataDir, 'redis'), { mode: 0o755 })
  // As a kill leaves it that came between making the file and writing it.
  writeFileSync(join(dataDir, 'redis', 'password'), '')
  const first = await start('redis', { dataDir, prefer: 'embedded' })
  expect(statSync(join(dataDir, 'redis')).mode & 0o777).toBe(0o700)
  const { password } = new URL(first.url)
  expect(password).not.toBe('')
  await first.stop()
  const second = await start('redis', { dataDir, prefer: 'embedded' })
  expect(new URL(second.url).password).toBe(password)
})

test('a client that connects while the embedded server starts needs the password too', async () => {
  const port = await freePort()
  const starting = start('redis', { dataDir: makeFolder(), port, prefer: 'embedded' })
  const socket = await connectEarly(port)
  socket.write('PING\r\n')
  const [reply] = await once(socket, 'data')
  expect(String(reply)).toContain('NOAUTH')
  await starting
})

test('a redis-server older than 7 on PATH is passed over', async () => {
  const path = fakeProgram('redis-server', 'Redis server v=6.2.14 sha=0:0 malloc=libc bits=64')
  expect((await start('redis', { dataDir: makeFolder(), path })).kind).toBe('embedded')
})

test('a folder stays with the server that created it', async () => {
  const dataDir = makeFolder()
  const embedded = await start('redis', { dataDir, prefer: 'embedded' })
  await connect(embedded).set('key', 'value')
  await embedded.stop()
  const path = fakeProgram('valkey-server', 'Valkey server v=8.1.0')
  const next = await start('redis', { dataDir, path })
  expect(next.kind).toBe('embedded')
  expect(await connect(next).get('key')).toBe('value')

  const nativeData = makeFolder()
  mkdirSync(join(nativeData, 'redis', 'appendonlydir'), { recursive: true })
  await expect(start('redis', { dataDir: nativeData, path: '' })).rejects.toThrow(
    'holds data that only a redis-server from PATH can read: install one',
  )
})

test('data that the embedded server cannot read gives a one-line error, and is kept', async () => {
  const dataDir = makeFolder()
  mkdirSync(join(dataDir, 'redis'))
  writeFileSync(join(dataDir, 'redis', 'dump.rdb'), 'REDIS0011torn')
  const file = join(dataDir, 'redis', 'dump.rdb')
  await expect(start('redis', { dataDir, prefer: 'embedded' })).rejects.toThrow(
    `Valkey cannot read ${file}: move the file away to start again`,
  )
})

function fakeProgram(name: string, version: string): string {
  const folder = makeFolder()
  writeFileSync(join(folder, name), `#!/bin/sh\necho '${version}'\n`)
  chmodSync(join(folder, name), 0o755)
  return folder
}

async function blockedClients(client: ReturnType<typeof connect>, count: number): Promise<void> {
  while (!(await client.info('clients')).includes(`blocked_clients:${count}\r\n`));
}

function pingOnce(port: number, password: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connectSocket(port, '127.0.0.1', () => socket.write(`AUTH ${password}\r\nPING\r\n`))
    let replies = ''
    socket.on('data', reply => {
      replies += reply
      if (replies === '+OK\r\n+PONG\r\n') socket.end()
      else if (!'+OK\r\n+PONG\r\n'.startsWith(replies)) reject(new Error(`Answered ${replies}`))
    })
    socket.on('close', () => resolve())
    socket.on('error', reject)
  })
}

/** Logged in. */
async function openSocket(port: number, password: string): Promise<Socket> {
  const socket = connectSocket({ port, host: '127.0.0.1', allowHalfOpen: true })
  onTestFinished(() => void socket.destroy())
  socket.write(`AUTH ${password}\r\n`)
  const [reply] = await once(socket, 'data')
  expect(String(reply)).toBe('+OK\r\n')
  socket.pause()
  return socket
}

/** As soon as the port is listened on. */
async function connectEarly(port: number): Promise<Socket> {
  for (;;) {
    const socket = connectSocket(port, '127.0.0.1')
    const isConnected = await Promise.race([once(socket, 'connect').then(() => true), once(socket, 'error').then(() => false)]).catch(
      () => false,
    )
    if (isConnected) {
      onTestFinished(() => void socket.destroy())
      return socket
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function hashOf(socket: Socket, length: number): Promise<string> {
  const hash = createHash('sha256')
  let received = 0
  for await (const chunk of socket) {
    hash.update(chunk as Buffer)
    received += (chunk as Buffer).length
    if (received >= length) break
  }
  return hash.digest('hex')
}
