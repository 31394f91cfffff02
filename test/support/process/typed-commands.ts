/** Commands that a user types, and programs that run until they are interrupted. Their environment has nothing of the test runner or of a running platform. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { plainEnvironment } from '../terminal.ts'
import { until } from '../until.ts'

export type Environment = Record<string, string>

/** Resolves with what the command wrote to stdout; rejects with all of its output if it fails. The registry of a test serves it meanwhile. */
export async function run(command: string, args: readonly string[], cwd: string, env: Environment = {}): Promise<string> {
  const child = spawn(command, args, { cwd, env: plainEnvironment(env), stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${stdout}${stderr}`)
  return stdout
}

export type Program = {
  output(): string
  /** Resolves when it has written this; rejects with its output if it ends before. */
  says(words: string): Promise<void>
  /** Sends SIGINT to the whole group, as Ctrl-C does, and resolves when it is gone. */
  interrupt(): Promise<void>
}

export function start(command: string, args: readonly string[], cwd: string, env: Environment = {}): Program {
  const child: ChildProcess = spawn(command, args, {
    ...{ cwd, env: plainEnvironment(env), detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
  })
  const ended = once(child, 'close')
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes: Buffer) => (output += bytes))
  const isOver = () => child.exitCode !== null || child.signalCode !== null
  return { output: () => output, says, interrupt }

  async function says(words: string): Promise<void> {
    const hasSaid = () => {
      if (!output.includes(words) && isOver()) throw new Error(`${command} ${args.join(' ')} ended before it wrote "${words}":\n${output}`)
      return output.includes(words)
    }
    await until(`${command} ${args.join(' ')} writes "${words}"`, hasSaid)
  }

  async function interrupt(): Promise<void> {
    if (!isOver()) process.kill(-(child.pid ?? 0), 'SIGINT')
    await ended
  }
}
