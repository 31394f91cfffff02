/**
 * A process of the bench, and its numbered requests and responses between driver and child. A child whose driver is gone ends itself.
 * A request that a child does not know is ignored, because another part of its program may handle it.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

type Request = { request: number; name: string; input: unknown }
type Response = { response: number; output?: unknown; error?: string }

export type Child = {
  pid: number
  /** Throws, with the end of its stderr, when it has ended. */
  checkAlive(): void
  ask<Output>(name: string, input?: unknown): Promise<Output>
  /** Resolves when the process has ended. Default SIGTERM. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

type ChildOptions = {
  args?: string[]
  /** Default: those of this process. */
  execArgv?: string[]
  env?: Record<string, string>
}

/** Starts a program of this folder that uses `handleRequests`. */
export async function startChild(program: string, options: ChildOptions = {}): Promise<Child> {
  const child = spawnChild(fileURLToPath(new URL(program, import.meta.url)), options)
  try {
    await child.ask('ready')
    return child
  } catch (error) {
    await child.stop()
    throw error
  }
}

/** Starts any program. Its stdout is dropped; the end of its stderr is kept for the error that reports its end. */
export function spawnChild(file: string, { args = [], execArgv = process.execArgv, env = {} }: ChildOptions = {}): Child {
  const child = fork(file, args, { execArgv, env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  const program = basename(file)
  const stderrEnd = keepEnd(child)
  const pending = new Map<number, { resolve: (output: never) => void; reject: (error: Error) => void }>()
  let requests = 0
  let hasExited = false
  const exited = once(child, 'exit').then(() => {
    hasExited = true
    for (const { reject } of pending.values()) reject(new Error(`${program} ended:\n${stderrEnd()}`))
  })
  child.on('message', (message: Response) => {
    const waiting = pending.get(message.response)
    pending.delete(message.response)
    if (message.error === undefined) waiting?.resolve(message.output as never)
    else waiting?.reject(new Error(`${program}: ${message.error}`))
  })
  return { pid: child.pid ?? 0, checkAlive, ask, stop }

  function checkAlive(): void {
    if (hasExited) throw new Error(`${program} has ended:\n${stderrEnd()}`)
  }

  async function ask<Output>(name: string, input?: unknown): Promise<Output> {
    checkAlive()
    requests += 1
    const request = requests
    return await new Promise<Output>((resolve, reject) => {
      pending.set(request, { resolve, reject })
      child.send({ request, name, input } satisfies Request)
    })
  }

  async function stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (!hasExited) child.kill(signal)
    const killTimer = setTimeout(() => child.kill('SIGKILL'), 30_000)
    await exited
    clearTimeout(killTimer)
  }
}

/** The child's side. Requests are handled concurrently. */
export function handleRequests(handlers: Record<string, (input: never) => unknown>): void {
  process.on('message', (message: unknown) => void handle(message))
  // Not at once, because programs of other projects have their own shutdown.
  process.on('disconnect', () => setTimeout(() => process.exit(0), 5_000).unref())

  async function handle(message: unknown): Promise<void> {
    if (typeof message !== 'object' || message === null || !('request' in message)) return
    const { request, name, input } = message as Request
    const act = name === 'ready' ? () => null : handlers[name]
    // Another part of this program may handle it.
    if (!act) return
    try {
      const output = await act(input as never)
      send({ response: request, output })
    } catch (error) {
      send({ response: request, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  }

  function send(message: Response): void {
    if (process.connected) process.send?.(message)
  }
}

/** Keeps the end of a process's stderr. */
function keepEnd(child: ChildProcess): () => string {
  let kept = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    kept = (kept + text).slice(-4_000)
  })
  return () => kept
}
