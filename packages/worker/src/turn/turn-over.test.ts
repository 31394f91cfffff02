/** What happens to a process with output after the end of a turn whose rejection is not handled, in a separate process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'

const setup = `
import { RivuletError } from ${JSON.stringify(import.meta.resolve('@rivulet/protocol'))}
import { setTimeout as sleep } from 'node:timers/promises'
import { abortReason, surviveLateWords, turnOver } from ${JSON.stringify(new URL('turn-over.ts', import.meta.url).href)}
const log = { warn: (_, message) => console.log(message) }
const stop = surviveLateWords(log)
process.on('exit', code => console.log('exit ' + code))
`

test('it lives, and says so', async () => {
  const { code, output } = await runProgram("void (async () => { throw turnOver('ended') })()")
  expect(output).toBe('code continued after its turn was over, and its error was not handled\nexit 0\n')
  expect(code).toBe(0)
})

test('it survives the unhandled rejection of a call that the turn’s signal aborts', async () => {
  const { code, output } = await runProgram(`
    const abort = new AbortController()
    void sleep(60_000, undefined, { signal: abort.signal })
    void fetch('http://127.0.0.1:9', { signal: abort.signal })
    void (async () => { await sleep(60_000, undefined, { signal: AbortSignal.any([abort.signal]) }) })()
    abort.abort(abortReason(turnOver('lost')))
  `)
  expect(output).toBe(`${'code continued after its turn was over, and its error was not handled\n'.repeat(3)}exit 0\n`)
  expect(code).toBe(0)
})

test('an abort that is no turn’s is a rejection like any other', async () => {
  const { code } = await runProgram('void Promise.reject(AbortSignal.abort().reason)')
  expect(code).not.toBe(0)
})

test('any other unhandled rejection ends it, as usual', async () => {
  const { code, errors } = await runProgram("void Promise.reject(new RivuletError('message_closed', 'a mistake'))")
  expect(code).not.toBe(0)
  expect(errors).toContain('a mistake')
})

test('a program that decides for itself is left to it', async () => {
  const { code, output } = await runProgram("process.on('unhandledRejection', () => console.log('mine')); void Promise.reject(1)")
  expect([code, output]).toEqual([0, 'mine\nexit 0\n'])
})

test('without a worker the process is as it was', async () => {
  const { code } = await runProgram("stop(); void Promise.reject(turnOver('ended'))")
  expect(code).not.toBe(0)
})

async function runProgram(program: string): Promise<{ code: number; output: string; errors: string }> {
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', setup + program])
  const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code, output, errors }
}
