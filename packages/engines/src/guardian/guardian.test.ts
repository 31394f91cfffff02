/** The log records why a server ended, whatever ended it, because after a run of hours there is no other evidence. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { kinds, makeFolder, start } from '../../test/scope.ts'
import { logOf } from './guardian-handle.ts'

const hasNative = kinds.some(({ name, kind, isMissing }) => name === 'redis' && kind === 'native' && !isMissing)

test.each([
  ['SIGTERM' as const, /guardian \d+ \(at most \d+ MB\) ends, because it received SIGTERM$/],
  ['SIGKILL' as const, /caller \d+: guardian \d+ ended by SIGKILL$/],
])('an embedded server ended by %s', async (signal, line) => {
  const { engine, log } = await startOne('embedded')
  end(engine, signal)
  expect(await engine.lost).toMatch(line)
  expect(log()).toMatch(line)
})

test.skipIf(!hasNative)('a server from PATH that is killed', async () => {
  const { engine, log } = await startOne('native')
  end(engine, 'SIGKILL')
  const line = /guardian \d+ \(at most \d+ MB\) ends, because redis .* ended by itself: SIGKILL$/
  expect(await engine.lost).toMatch(line)
  expect(log()).toMatch(line)
})

test('a server that is stopped is not lost, and its log is kept when it is started again', async () => {
  const { engine, dataDir, log } = await startOne('embedded')
  await engine.stop()
  expect(log()).toMatch(/ends, because its caller stopped it$/)
  await start('redis', { dataDir, prefer: 'embedded' })
  expect(log()).not.toContain('ends')
  expect(log('.before')).toMatch(/ends, because its caller stopped it$/)
  expect(await Promise.race([engine.lost, 'not lost'])).toBe('not lost')
})

async function startOne(prefer: 'native' | 'embedded') {
  const dataDir = makeFolder()
  const engine = await start('redis', { dataDir, prefer })
  const log = (which = '') => readFileSync(`${logOf(join(dataDir, 'redis'))}${which}`, 'utf8').trimEnd()
  return { engine, dataDir, log }
}

function end({ pid }: { pid: number | null }, signal: NodeJS.Signals): void {
  if (pid === null) throw new Error('The engine has no process')
  process.kill(pid, signal)
}
