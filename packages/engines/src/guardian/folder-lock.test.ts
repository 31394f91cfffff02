import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { makeFolder } from '../../test/scope.ts'
import { lockFolder } from './folder-lock.ts'
import { typeScriptLoader } from './guardian-handle.ts'
import { nameProcess } from './process-name.ts'

const { signal } = new AbortController()

test('of many processes that find a dead lock at the same time, one acquires it', async () => {
  const folder = makeFolder()
  symlinkSync('999999999@1 999999999@1', join(folder, 'lock.7'))
  const contenders = await Promise.all(Array.from({ length: 4 }, () => startContender(folder)))
  for (const contender of contenders) contender.go()
  const outcomes = await Promise.all(contenders.map(contender => contender.outcome))
  expect(outcomes.filter(outcome => outcome === 'locked')).toHaveLength(1)
  expect(outcomes.filter(outcome => outcome.includes(`is in use by process ${process.pid}`))).toHaveLength(3)
  expect(readdirSync(folder).filter(name => name.startsWith('lock.'))).toEqual(['lock.8'])
})

test('a lock whose pid belongs to another process by now is dead', async () => {
  const folder = makeFolder()
  symlinkSync(`${process.pid}@1 ${process.pid}@1`, join(folder, 'lock.1'))
  await lockFolder(folder, signal)
  expect(readdirSync(folder)).toEqual(['lock.2'])
})

test('a wait for the guardian of a dead caller can be aborted', async () => {
  const folder = makeFolder()
  symlinkSync(`${nameProcess(process.pid)} 999999999@1`, join(folder, 'lock.1'))
  const stopping = new AbortController()
  const waiting = lockFolder(folder, stopping.signal)
  stopping.abort()
  await expect(waiting).rejects.toThrow('aborted')
})

test('other files in the folder are not locks', async () => {
  const folder = makeFolder()
  writeFileSync(join(folder, 'lock.x'), '')
  await lockFolder(folder, signal)
  expect(readdirSync(folder).sort()).toEqual(['lock.1', 'lock.x'])
})

/** Loads first and waits for `go`, so that all contenders start together. Lives until the test ends. */
async function startContender(folder: string): Promise<{ go(): void; outcome: Promise<string> }> {
  const program = `
    const { lockFolder } = await import(${JSON.stringify(new URL('./folder-lock.ts', import.meta.url).href)})
    console.log('ready')
    process.stdin.once('data', () => lockFolder(process.argv[1], new AbortController().signal).then(() => console.log('locked'), error => console.log(error.message)))`
  const child = spawn(process.execPath, ['--import', typeScriptLoader(), '--input-type=module', '-e', program, folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(async () => {
    child.kill()
    await once(child, 'exit')
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  await lines.next()
  return { go: () => void child.stdin.write('go\n'), outcome: lines.next().then(({ value }) => String(value)) }
}
