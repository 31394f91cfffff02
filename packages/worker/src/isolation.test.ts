import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { createIsolatedRuns, decodeIsolatedTurn } from './isolation.ts'

const never = new AbortController().signal

test('so many processes run at a time; the next turn gets one when another has ended', async () => {
  const { run, started } = open(2)
  const runs = ['a', 'b', 'c', 'd'].map(turnId => run(turnId))
  await until('two are started', () => started.size === 2)
  expect([...started.keys()]).toEqual(['a', 'b'])
  started.get('b')?.kill()
  expect(await runs[1]).toBe('ran')
  await until('the third is started', () => started.size === 3)
  expect([...started.keys()]).toEqual(['a', 'b', 'c'])
  for (const turnId of ['a', 'c']) started.get(turnId)?.kill()
  await until('the fourth is started', () => started.size === 4)
  started.get('d')?.kill()
  expect(await Promise.all(runs)).toEqual(['ran', 'ran', 'ran', 'ran'])
})

test('a turn that is lost while it waits gets no process, and takes no place', async () => {
  const { run, started } = open(1)
  const lost = new AbortController()
  const [first, second, third] = [run('a'), run('b', lost.signal), run('c')]
  await until('one is started', () => started.size === 1)
  lost.abort()
  expect(await second).toBe('not started')
  started.get('a')?.kill()
  await until('the next is started', () => started.has('c'))
  started.get('c')?.kill()
  expect(await Promise.all([first, third])).toEqual(['ran', 'ran'])
})

test('a worker that stops ends those that run, and starts no others', async () => {
  const { run, started, stopping } = open(1)
  const runs = [run('a'), run('b')]
  await until('one is started', () => started.size === 1)
  stopping.abort()
  expect(await Promise.all(runs)).toEqual(['ran', 'not started'])
  expect(started.size).toBe(1)
})

function open(maxTurns: number) {
  const started = new Map<string, ChildProcess>()
  const stopping = new AbortController()
  const runIsolated = createIsolatedRuns({ turnId: undefined, start, maxTurns }, stopping.signal)
  return { run, started, stopping }

  function run(turnId: string, signal = never) {
    return runIsolated({ turnId, claimId: 'c', agent: 'x' }, { signal, onStart: () => {} })
  }

  function start(encoded: string): ChildProcess {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'])
    const { turnId } = decodeIsolatedTurn(encoded)
    started.set(turnId, child)
    onTestFinished(async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill()
      await once(child, 'exit')
    })
    return child
  }
}
