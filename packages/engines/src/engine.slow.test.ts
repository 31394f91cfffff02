import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { keepers, kinds, makeFolder, named, shareFolder, start, startCaller } from '../test/scope.ts'
import { isAlive } from './guardian/process-name.ts'
import { startPostgres, startRedis } from './index.ts'

for (const { name, kind, isMissing, label } of kinds) {
  describe.skipIf(isMissing)(label, () => {
    const keeper = keepers[name]
    const dataDir = shareFolder()

    test('describes itself, and keeps its data over a stop and a start', async () => {
      const first = await start(name, { dataDir, prefer: kind })
      expect(first.kind).toBe(kind)
      expect(first.description).toMatch(/^(redis|valkey|postgres) \d+\.\d+ \((\/.*|wasm|embedded)\), data in /)
      expect(first.description).toContain(join(dataDir, name))
      const server = named(first.pid)
      await keeper.put(first, 'one')
      await Promise.all([first.stop(), first.stop()])
      expect(isAlive(server)).toBe(false)

      expect(await keeper.list(await start(name, { dataDir, prefer: kind }))).toEqual(['one'])
    })

    test('uses the given port; a second start on its folder fails with one line, and the first server keeps running', async () => {
      const port = await freePort()
      const first = await start(name, { dataDir, port, prefer: kind })
      expect(new URL(first.url).port).toBe(String(port))
      const rejection = `The data folder ${join(dataDir, name)} is in use by process ${process.pid}`
      await expect(start(name, { dataDir, prefer: kind })).rejects.toThrow(rejection)
      expect(await keeper.list(first)).toEqual(['one'])
    })

    test('fails with one line when the port is taken, without contacting the program that uses it', async () => {
      const server = createServer()
      let connections = 0
      server.on('connection', () => connections++)
      await once(server.listen(0, '127.0.0.1'), 'listening')
      onTestFinished(() => void server.close())
      const { port } = server.address() as { port: number }
      const rejection = `Port ${port} on 127.0.0.1 is taken by another program`
      await expect(start(name, { dataDir, port, prefer: kind })).rejects.toThrow(rejection)
      expect(server.listening).toBe(true)
      expect(connections).toBe(0)
    })

    test.skipIf(process.getuid?.() !== 0)('runs for a user other than root', async () => {
      const home = makeFolder()
      chmodSync(home, 0o777)
      const env = { PATH: process.env.PATH, HOME: home, TMPDIR: home }
      const caller = await startCaller(name, { dataDir: join(home, 'data'), prefer: kind }, { uid: 65534, gid: 65534, env })
      expect(caller.reply).toMatchObject({ started: { kind } })
    })
  })
}

describe.each([
  ['redis' as const, startRedis, 'redis://:secret@cache.example:6379/2', 'redis at cache.example:6379'],
  ['postgres' as const, startPostgres, 'postgres://me:secret@db.example/app', 'postgres at db.example'],
])('%s by URL', (name, startEngine, url, description) => {
  test('is used unchanged, without a folder or a process', async () => {
    const dataDir = join(makeFolder(), 'never-made')
    const engine = await startEngine({ url, dataDir })
    expect(engine).toMatchObject({ url, kind: 'external', description, pid: null })
    await engine.stop()
    expect(existsSync(dataDir)).toBe(false)
  })

  test('of another protocol is rejected without showing it', async () => {
    const refused = await startEngine({ url: 'http://me:secret@db.example', dataDir: makeFolder() }).catch(String)
    expect(refused).toMatch(new RegExp(`^Error: The ${name} URL must begin with ${name}://`))
    expect(refused).not.toContain('secret')
  })
})

describe('a data folder that cannot be written', () => {
  test('because a file has its name gives a one-line error', async () => {
    const file = join(makeFolder(), 'file')
    writeFileSync(file, '')
    await expect(startRedis({ dataDir: file })).rejects.toThrow(`Cannot write to the data folder ${file}/redis (ENOTDIR: not a directory)`)
  })

  test.skipIf(process.getuid?.() !== 0)('because it belongs to another user gives a one-line error', async () => {
    const folder = makeFolder()
    const scratch = makeFolder()
    chmodSync(scratch, 0o777)
    mkdirSync(join(folder, 'postgres'))
    const caller = await startCaller('postgres', { dataDir: folder }, { uid: 65534, gid: 65534, env: { TMPDIR: scratch } })
    expect(caller.reply).toEqual({ failed: `Cannot write to the data folder ${folder}/postgres (EACCES: permission denied)` })
  })
})

async function freePort(): Promise<number> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as { port: number }
  await new Promise(resolve => server.close(resolve))
  return port
}
