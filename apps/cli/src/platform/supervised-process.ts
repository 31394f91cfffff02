/**
 * A program that is kept running: restarted when it dies, with a growing delay if it dies soon, and stopped with SIGTERM. Its output is passed
 * on line by line. Its stdin, or for Node a channel, leads to this process: it stops when that closes, so it does not outlive a supervisor that is killed.
 *
 * A program that exits because of its environment or its files is not restarted by itself, because it would exit again: `restart` starts it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { backoffMs } from '@rivulet/protocol'
import { configurationExitCode } from '@rivulet/runtime/environment'

export type SupervisedProcess = { restart(): void; stop(): Promise<void> }

export type ProcessSpec = {
  name: string
  /** Default: Node. */
  command?: string
  args: readonly string[]
  environment: Record<string, string | undefined>
  /** How long a program may take to stop before it is killed. */
  stopMs: number
  /** What happens to the program. */
  write: (line: string) => void
  /** What the program writes. */
  hear: (line: string) => void
  /** The program has ended because of its environment or its files. */
  onUnusable: () => void
  /** False once everything is being stopped: then nothing is started again. */
  isWanted: () => boolean
}

export const waitsForChange = 'worker waits for a change of its files'

type State =
  | { at: 'running'; child: ChildProcess }
  /** Told to end; started again when it has. */
  | { at: 'restarting' }
  | { at: 'delayed'; timer: NodeJS.Timeout }
  | { at: 'unusable' }
  | { at: 'stopped' }

export function superviseProcess(spec: ProcessSpec): SupervisedProcess {
  const { name, command, args, environment, write, hear, onUnusable, isWanted, stopMs } = spec
  let quickDeaths = 0
  let ended: Promise<void> = Promise.resolve()
  let state: State = launch()
  return { restart, stop }

  function launch(): State {
    const startedAt = performance.now()
    const child = spawn(command ?? process.execPath, [...args], {
      env: { ...environment, FORCE_COLOR: '0' },
      stdio: command ? ['pipe', 'pipe', 'pipe'] : ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    for (const stream of [child.stdout, child.stderr]) if (stream) createInterface({ input: stream }).on('line', hear)
    ended = new Promise(resolve => {
      child.once('exit', (code, signal) => {
        state = afterEnd(child, performance.now() - startedAt, signal ?? code)
        resolve()
      })
      child.once('error', error => {
        hear(error.message)
        state = { at: 'unusable' }
        onUnusable()
        resolve()
      })
    })
    return { at: 'running', child }
  }

  function afterEnd(child: ChildProcess, livedMs: number, how: NodeJS.Signals | number | null): State {
    if (state.at === 'stopped' || !isWanted()) return { at: 'stopped' }
    if (state.at === 'restarting') return launch()
    if (how === configurationExitCode) {
      // The reason may still be in the pipe.
      child.once('close', onUnusable)
      return { at: 'unusable' }
    }
    quickDeaths = livedMs < 10_000 ? quickDeaths + 1 : 0
    const delay = backoffMs(quickDeaths + 1, { firstMs: 100, maxMs: 5_000, jitter: [1, 1] })
    write(`${name.padEnd(6)} ended (${how}); starting it again`)
    return { at: 'delayed', timer: setTimeout(() => (state = launch()), delay) }
  }

  function restart(): void {
    if (state.at === 'stopped' || state.at === 'restarting') return
    quickDeaths = 0
    if (state.at === 'delayed') clearTimeout(state.timer)
    if (state.at === 'running') end(state.child)
    state = state.at === 'running' ? { at: 'restarting' } : launch()
  }

  async function stop(): Promise<void> {
    if (state.at === 'delayed') clearTimeout(state.timer)
    if (state.at === 'running') end(state.child)
    state = { at: 'stopped' }
    await ended
  }

  function end(child: ChildProcess): void {
    child.kill('SIGTERM')
    const impatience = setTimeout(() => child.kill('SIGKILL'), stopMs)
    void ended.then(() => clearTimeout(impatience))
  }
}
