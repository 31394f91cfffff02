/** How a server ended is written down, whoever ended it: a run of hours later, that is all there is to go by. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { kinds, makeFolder, start } from '../test/scope.ts'
import { logOf } from './guardian-handle.ts'

const hasNative = kinds.some(({ name, kind, isMissing }) => name === 'redis' && kind === 'native' && !isMissing)

test.each([
  ['SIGTERM' as const, /guardian \d+ \(at most \d+ MB\) ends, because somebody sent SIGTERM$/],
  ['SIGKILL' as const, /caller \d+: guardian \d+ ended by SIGKILL$/],
])('the embedded one, ended by %s', async (signal, words) => {
  const { engine, log } = await startOne('embedded')
  end(engine, signal)
  expect(await engine.lost).toMatch(words)
  expect(log()).toMatch(words)
})

test.skipIf(!hasNative)('one from PATH that is killed', async () => {
  const { engine, log } = await startOne('native')
  end(engine, 'SIGKILL')
  const words = /guardian \d+ \(at most \d+ MB\) ends, because redis .* ended by itself: SIGKILL$/
  expect(await engine.lost).toMatch(words)
  expect(log()).toMatch(words)
})

test('one that is stopped is not lost; what it wrote is still there when it is started again', async () => {
  const { engine, dataDir, log } = await startOne('embedded')
  await engine.stop()
  expect(log()).toMatch(/ends, because its caller wants it to end$/)
  await start('redis', { dataDir, prefer: 'embedded' })
  expect(log()).not.toContain('ends')
  expect(log('.before')).toMatch(/ends, because its caller wants it to end$/)
  expect(await Promise.race([engine.lost, 'nobody was told of a loss'])).toBe('nobody was told of a loss')
})

async function startOne(prefer: 'native' | 'embedded') {
  const dataDir = makeFolder()
  const engine = await start('redis', { dataDir, prefer })
  const log = (which = '') => readFileSync(`${logOf(join(dataDir, 'redis'))}${which}`, 'utf8').trimEnd()
  return { engine, dataDir, log }
}

function end({ pid }: { pid: number | null }, signal: NodeJS.Signals): void {
  if (pid === null) throw new Error('It started no process')
  process.kill(pid, signal)
}
