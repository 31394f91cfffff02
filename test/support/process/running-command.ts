/** A command of a shell that goes on until it is interrupted. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { until } from '../until.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

export type RunningCommand = {
  output(): string
  /** Resolves when it has written this; fails when it ends before. */
  says(text: string): Promise<void>
  /** Sends what Ctrl-C sends, and resolves when it is gone. */
  interrupt(): Promise<void>
}

/** In the root of the repository, as a newcomer types it, or in a folder inside it. */
export function startCommand(command: string, env: Record<string, string>, folder = root): RunningCommand {
  // Its own group, so that the whole of it can be sent what Ctrl-C sends.
  const child = spawn('bash', ['-c', command], {
    cwd: folder,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit')
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', bytes => (output += bytes))
  return { output: () => output, says, interrupt }

  async function says(text: string): Promise<void> {
    await until(`"${command}" writes "${text}"`, () => {
      if (output.includes(text)) return true
      if (child.exitCode !== null) throw new Error(`"${command}" ended (${child.exitCode}):\n${output}`)
      return false
    })
  }

  async function interrupt(): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGINT')
    await exited
  }
}
