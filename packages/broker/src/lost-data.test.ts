/**
 * A Redis that restarts, or loses the end of its data. No cursor is ever given to two different entries, and no writer continues a log that
 * may lack entries.
 */
import { describe, expect, test, vi } from 'vitest'
import { hasNativeRedis, startRedisOfTest } from '../../../test/support/engines/redis/private-redis.ts'
import { finished, newTask, notes, openLogs, queued, started } from '../../../test/support/platform/logs.ts'

describe.skipIf(!hasNativeRedis)(
  `a Redis that restarts${hasNativeRedis ? '' : ' (skipped: no redis-server or valkey-server on PATH)'}`,
  () => {
    test('an append that was in flight is not written after the restart; it returns gap', async () => {
      const redis = await startRedisOfTest()
      const { logs, task } = await runningTurn(redis.url)
      expect(await logs.writer.append([notes(task, 2, 1, 'a')])).toEqual(['ok'])
      redis.freeze()
      const underWay = logs.writer.append([notes(task, 2, 2, 'b')])
      await expect.poll(() => logs.redis.status).toBe('ready')
      await redis.kill()
      await redis.restart()
      expect(await underWay).toEqual(['gap'])
      expect(await logs.ids(task)).toEqual(['1-1', '2-1', '2-2'])
    })

    test('the old epoch is not continued even when nothing was lost, because a reader cannot know that', async () => {
      const redis = await startRedisOfTest()
      const { logs, task } = await runningTurn(redis.url)
      await logs.writer.append([notes(task, 2, 1, 'a')])
      await redis.kill()
      await redis.restart()
      expect(await logs.writer.append([notes(task, 2, 2, 'b')])).toEqual(['gap'])
      expect(await logs.writer.append([notes(task, 2, 1, 'a')])).toEqual(['gap'])
      expect((await logs.announcer.announce({ task, running: false, entries: [finished(task)] })).result).toBe('gap')
      await logs.announcer.announce({ task, epoch: 3, running: true, entries: [started(task, 3)] })
      expect(await logs.writer.append([notes(task, 3, 1, 'a', 'b')])).toEqual(['ok'])
      expect((await logs.announcer.announce({ task, running: false, entries: [finished(task)] })).result).toBe('ok')
      expect(await logs.ids(task)).toEqual(['1-1', '2-1', '2-2', '3-1', '3-2', '3-3', '3-4'])
    })

    test('a claim that is repeated after the restart returns gap, because its epoch may have lost entries', async () => {
      const redis = await startRedisOfTest()
      const { logs, task } = await runningTurn(redis.url)
      await redis.kill()
      await redis.restart()
      expect(await logs.announcer.announce({ task, epoch: 2, running: true, entries: [queued(task), started(task, 2)] })).toEqual({
        result: 'gap',
        cursor: '2-1',
      })
      expect(await logs.ids(task)).toEqual(['1-1', '2-1'])
      // The log is still stale: entries after 2-1 may be lost.
      expect(await logs.reader.state(task)).toMatchObject({ cursor: '2-1', isStale: true })
      expect(await logs.writer.append([notes(task, 2, 1, 'a')])).toEqual(['gap'])
    })

    test('a log is opened anew only by a call that may open it, and leaves the turns before the first that it tells to Postgres', async () => {
      const redis = await startRedisOfTest()
      const { logs, task } = await runningTurn(redis.url)
      await redis.kill()
      await redis.restart()
      const claim = { task, epoch: 4, running: true, entries: [queued(task, 2), started(task, 4, 2)] }
      expect((await logs.announcer.announce({ ...claim, opens: false })).result).toBe('gap')
      expect((await logs.announcer.announce({ ...claim, first: 2 })).result).toBe('ok')
      // Turn 1 is left to Postgres: a process that announces it late writes nothing.
      const late = { task, running: false, entries: [queued(task), finished(task)] }
      expect(await logs.announcer.announce(late)).toEqual({ result: 'ok', cursor: '4-2' })
      await logs.announcer.announce({ task, running: false, entries: [finished(task, 2)] })
      // The turn that ran before the restart does not keep the log open.
      expect(await logs.redis.pttl(logs.keys.state(task))).toBeGreaterThan(0)
      await redis.client.flushall()
      expect((await logs.announcer.announce({ ...claim, epoch: 6, opens: false })).result).toBe('missing')
    })

    test('a cursor that was lost is never given to another entry', async () => {
      const redis = await startRedisOfTest()
      const { logs, task } = await runningTurn(redis.url)
      const { heard: received } = await logs.listen(task)
      await logs.writer.append([notes(task, 2, 1, 'a', 'b')])
      const saved = redis.mark()
      await logs.writer.append([notes(task, 2, 3, 'lost')])
      await logs.writer.append([notes(task, 2, 4, 'lost too')])
      const before = (await received(3)).flatMap(({ entries }) => entries)
      await redis.kill()
      await redis.restart(saved)

      expect(await logs.ids(task)).toEqual(['1-1', '2-1', '2-2', '2-3'])
      // A writer that does not know of the loss, and one that starts again at the position of the server.
      expect(await logs.writer.append([notes(task, 2, 5, 'next')])).toEqual(['gap'])
      expect(await logs.writer.append([notes(task, 2, 3, 'other')])).toEqual(['gap'])
      await logs.announcer.announce({ task, epoch: 3, running: true, entries: [started(task, 3)] })
      expect(await logs.writer.append([notes(task, 3, 1, 'other')])).toEqual(['ok'])
      const after = await logs.reader.read(task, '0-0', 100)
      const lost = before.filter(({ cursor }) => !after.some(entry => entry.cursor === cursor))
      expect(lost.map(({ cursor }) => cursor)).toEqual(['2-4', '2-5'])
      for (const entry of before) expect([undefined, entry.json]).toContain(after.find(({ cursor }) => cursor === entry.cursor)?.json)
    })

    test('a script with the old run id is not used after the restart, even when another process has loaded it', async () => {
      const redis = await startRedisOfTest()
      const { logs, task } = await runningTurn(redis.url)
      const evals = vi.spyOn(logs.redis, 'eval')
      await logs.redis.script('FLUSH')
      await logs.announcer.announce({ task, running: true, entries: [] })
      const old = evals.mock.calls.flatMap(([text, , , arg]) => (arg === 'load' ? [String(text)] : []))
      expect(old).toHaveLength(1)
      await redis.kill()
      await redis.restart()
      for (const text of old) await logs.redis.eval(text, 1, 'a key', 'load')
      await logs.announcer.announce({ task, epoch: 3, running: true, entries: [started(task, 3)] })
      expect(await logs.writer.append([notes(task, 3, 1, 'a')])).toEqual(['ok'])
    })

    test('a log of before a promotion is not continued, and scripts of before it are loaded again', async () => {
      const redis = await startRedisOfTest()
      const { logs, task } = await runningTurn(redis.url)
      await logs.writer.append([notes(task, 2, 1, 'a')])
      await redis.client.replicaof('127.0.0.1', '1')
      await redis.client.replicaof('NO', 'ONE')
      // Another process has connected since, so that its script has the new life.
      const late = openLogs({ url: redis.url, keys: logs.keys })
      expect(await late.writer.append([notes(task, 2, 2, 'b')])).toEqual(['gap'])
      await logs.announcer.announce({ task, epoch: 3, running: true, entries: [started(task, 3)] })
      expect(await late.writer.append([notes(task, 3, 1, 'a')])).toEqual(['ok'])
      expect(await logs.writer.append([notes(task, 3, 2, 'b')])).toEqual(['ok'])
      expect(await logs.reader.state(task)).toMatchObject({ isStale: false })
    })

    test('a log that is lost as a whole is missing, and is not opened again under its old epoch', async () => {
      const redis = await startRedisOfTest()
      const saved = redis.mark()
      const { logs, task } = await runningTurn(redis.url)
      await redis.kill()
      await redis.restart(saved)
      expect(await logs.writer.append([notes(task, 2, 1, 'a')])).toEqual(['missing'])
      expect((await logs.announcer.announce({ task, running: false, entries: [finished(task)] })).result).toBe('missing')
      expect(await logs.redis.dbsize()).toBe(0)
    })
  },
)

test('a Redis that forgets only its scripts continues to work', async () => {
  const logs = openLogs()
  const task = newTask()
  await logs.announcer.announce({ task, epoch: 2, running: true, entries: [started(task, 2)] })
  await logs.writer.append([notes(task, 2, 1, 'a')])
  await logs.redis.script('FLUSH')
  expect(await Promise.all([2, 3, 4].map(number => logs.writer.append([notes(task, 2, number, 'x')])))).toEqual([['ok'], ['ok'], ['ok']])
  expect(await logs.ids(task)).toEqual(['2-1', '2-2', '2-3', '2-4', '2-5'])
})

async function runningTurn(url: string) {
  const logs = openLogs({ url })
  const task = newTask()
  await logs.announcer.announce({ task, epoch: 1, whole: true, running: false, entries: [queued(task)] })
  await logs.announcer.announce({ task, epoch: 2, running: true, entries: [started(task, 2)] })
  return { logs, task }
}
