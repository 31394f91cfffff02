/**
 * Runs a command of a shell in a process group of its own, so that its end, its time limit and an abort also end what it has started.
 *
 * A process that has left the group (`setsid`) runs on: the command does not wait for it, and its output is no longer read.
 */
import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'

type CommandOptions = { folder: string; timeoutMs: number; maxChars: number; signal: AbortSignal }

type CommandResult = { code: number; output: string }

/** How long the pipes may stay open after the end of the shell. Its own output is in them already. */
const drainMs = 500

/** Rejects for a command that was aborted or exceeded its time. Output behind twice `maxChars` is dropped. */
export function runCommand(command: string, { folder, timeoutMs, maxChars, signal }: CommandOptions): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const shell = spawn('/bin/sh', ['-c', command], {
      ...{ cwd: folder, env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: folder }, detached: true },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    shell.on('error', fail)
    let group = shell.pid
    let output = ''
    // Node creates no pipes when the process or the machine has too many open files.
    const pipes: (Readable | undefined)[] = [shell.stdout, shell.stderr]
    for (const pipe of pipes) {
      pipe?.setEncoding('utf8').on('data', (text: string) => {
        if (output.length < 2 * maxChars) output += text
      })
    }
    let timer = setTimeout(() => fail(new Error(`The command ran longer than ${timeoutMs} ms`)), timeoutMs)
    const abort = () => fail(signal.reason)
    signal.addEventListener('abort', abort, { once: true })

    shell.on('exit', () => {
      endGroup()
      clearTimeout(timer)
      // After a delay of the event loop, the timer comes before the output that is in the pipes, and setImmediate after it.
      timer = setTimeout(() => setImmediate(closePipes), drainMs)
    })
    shell.on('close', (code, endedBy) => {
      leave()
      if (code === null) reject(new Error(`The command was ended by ${endedBy}`))
      else resolve({ code, output })
    })

    function fail(error: unknown): void {
      leave()
      endGroup()
      closePipes()
      reject(error)
    }

    function leave(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }

    function closePipes(): void {
      for (const pipe of pipes) pipe?.destroy()
    }

    /** Sends one signal, at the latest in the callback in which Node reaps the shell: after that, the id may be another group's. */
    function endGroup(): void {
      if (group === undefined) return
      try {
        process.kill(-group, 'SIGKILL')
      } catch {
        // The group has ended already.
      }
      group = undefined
    }
  })
}
