/** Runs a command of a shell in a process group of its own, so that its end, its time limit and an abort also end what it has started. */
import { spawn } from 'node:child_process'

export type CommandOptions = { folder: string; timeoutMs: number; maxChars: number; signal: AbortSignal }

export type CommandResult = { code: number; output: string }

/** Rejects for a command that was aborted or exceeded its time. Output behind twice `maxChars` is dropped. */
export function runCommand(command: string, { folder, timeoutMs, maxChars, signal }: CommandOptions): Promise<CommandResult> {
  signal.throwIfAborted()
  const shell = spawn('/bin/sh', ['-c', command], {
    ...{ cwd: folder, env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: folder }, detached: true },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      if (output.length < 2 * maxChars) output += text
    })
  }
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(new Error(`The command ran longer than ${timeoutMs} ms`)), timeoutMs)
    const abort = () => fail(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    shell.on('error', fail)
    // What it has left in the background would hold the pipes open.
    shell.on('exit', endGroup)
    shell.on('close', (code, endedBy) => {
      leave()
      if (code === null) reject(new Error(`The command was ended by ${endedBy}`))
      else resolve({ code, output })
    })

    function fail(error: unknown): void {
      leave()
      endGroup()
      reject(error)
    }

    function leave(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
  })

  function endGroup(): void {
    if (shell.pid === undefined) return
    try {
      process.kill(-shell.pid, 'SIGKILL')
    } catch {
      // The group has ended already.
    }
  }
}
