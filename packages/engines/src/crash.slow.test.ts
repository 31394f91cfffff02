import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  guardianOf,
  keepers,
  kinds,
  makeFolder,
  named,
  query,
  shareFolder,
  start,
  startCaller,
  startedBy,
  untilGone,
} from '../test/scope.ts'
import { isAlive, type ProcessName, pidOf } from './guardian/process-name.ts'

for (const { name, kind, isMissing, label } of kinds) {
  describe.skipIf(isMissing)(label, () => {
    const keeper = keepers[name]
    const dataDir = shareFolder()

    test('ends when its caller is killed; the next start waits for that and finds all data', async () => {
      const { engine, caller, server } = await startInCaller()
      await keeper.put(engine, 'caller killed')
      kill(caller)
      const next = await start(name, { dataDir, prefer: kind })
      expect(isAlive(server)).toBe(false)
      expect(await keeper.list(next)).toContain('caller killed')
    })

    test('starts again with its data after caller, guardian and server were killed', async () => {
      const { engine, caller, guardian, server } = await startInCaller()
      await keeper.put(engine, 'all killed')
      kill(caller, guardian, server)
      await untilGone(caller, guardian, server)
      // Files that a kill leaves during a save and during the creation of the data.
      writeFileSync(join(dataDir, name, 'temp-42.rdb'), 'REDIS0')
      writeFileSync(join(dataDir, name, 'data.new'), '')
      expect(await keeper.list(await start(name, { dataDir, prefer: kind }))).toContain('all killed')
    })

    test('starts again after its guardian was killed, and ends the server that was left running', async () => {
      const first = await start(name, { dataDir, prefer: kind })
      const server = named(first.pid)
      await keeper.put(first, 'guardian killed')
      kill(guardian())
      const next = await start(name, { dataDir, prefer: kind })
      expect(isAlive(server)).toBe(false)
      expect(await keeper.list(next)).toContain('guardian killed')
      // Stopping a dead engine is not an error.
      await first.stop()
    })

    async function startInCaller() {
      const caller = await startCaller(name, { dataDir, prefer: kind })
      const engine = startedBy(caller)
      return { engine, caller: named(caller.process.pid), guardian: guardian(), server: named(engine.pid) }
    }

    function guardian(): ProcessName {
      const found = guardianOf(dataDir, name)
      if (!found) throw new Error(`No guardian in ${dataDir}`)
      return found
    }
  })
}

test('postgres starts again when it was killed and a busy session has not noticed', async () => {
  const dataDir = makeFolder()
  const engine = await start('postgres', { dataDir, prefer: 'embedded' })
  const busy = query(engine, 'DO $$ BEGIN LOOP END LOOP; END $$').catch(String)
  const findBusy = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'DO %' AND state = 'active'"
  const found = await vi.waitUntil(async () => (await query<{ pid: number }>(engine, findBusy))[0], 10_000)
  const session = named(found.pid)
  // If the test fails, the session would run for ever.
  onTestFinished(() => {
    if (isAlive(session)) kill(session)
  })
  kill(named(engine.pid))
  const next = await start('postgres', { dataDir, prefer: 'embedded' })
  expect(await query(next, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  expect(await busy).toContain('Connection terminated')
  expect(isAlive(session)).toBe(false)
})

function kill(...names: ProcessName[]): void {
  for (const name of names) process.kill(pidOf(name), 'SIGKILL')
}
