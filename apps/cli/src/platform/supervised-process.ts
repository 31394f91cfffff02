/**
 * A program that is kept running: restarted when it dies, with a growing delay if it dies soon, and stopped with SIGTERM. Its output is passed
 * on line by line.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { backoffMs } from '@rivulet/protocol'

export type SupervisedProcess = { restart(): Promise<void>; stop(): Promise<void> }

export type ProcessSpec = {
  name: string
  /** What Node is called with. */
  args: readonly string[]
  environment: Record<string, string | undefined>
  /** How long a program may take to stop before it is killed. Default 20,000. */
  stopMs?: number
  /** What happens to the program. */
  write: (line: string) => void
  /** What the program writes. */
  hear: (line: string) => void
  /** False once everything is being stopped: then nothing is started again. */
  isWanted: () => boolean
}

export function superviseProcess(spec: ProcessSpec): SupervisedProcess {
  const { name, args, environment, write, hear, isWanted, stopMs = 20_000 } = spec
  let child: ChildProcess | null = null
  let isStopping = false
  let quickDeaths = 0
  let comingBack: NodeJS.Timeout | undefined
  launch()
  return { restart, stop }

  function launch(): void {
    const startedAt = performance.now()
    const started = spawn(process.execPath, [...args], {
      env: { ...environment, FORCE_COLOR: '0' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child = started
    for (const stream of [started.stdout, started.stderr]) createInterface({ input: stream }).on('line', hear)
    started.once('exit', (code, signal) => {
      if (child === started) child = null
      if (isStopping || !isWanted()) return
      quickDeaths = performance.now() - startedAt < 10_000 ? quickDeaths + 1 : 0
      const delay = backoffMs(quickDeaths + 1, { firstMs: 100, maxMs: 5_000, jitter: [1, 1] })
      write(`${name.padEnd(6)} ended (${signal ?? code}); starting it again`)
      comingBack = setTimeout(launch, delay)
    })
  }

  async function restart(): Promise<void> {
    quickDeaths = 0
    await end()
  }

  async function stop(): Promise<void> {
    isStopping = true
    clearTimeout(comingBack)
    await end()
  }

  async function end(): Promise<void> {
    const ending = child
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return
    const exited = new Promise(resolve => ending.once('exit', resolve))
    ending.kill('SIGTERM')
    const impatience = setTimeout(() => ending.kill('SIGKILL'), stopMs)
    await exited
    clearTimeout(impatience)
  }
}
