/**
 * A process of the bench, and the two ends of its line to the driver: questions with numbers, answers with the same. Whoever is left by the
 * driver ends.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

type Question = { question: number; name: string; input: unknown }
type Answer = { answer: number; output?: unknown; error?: string }

export type Child = {
  pid: number
  /** Throws, with what it complained about, when it has ended. */
  checkAlive(): void
  ask<Output>(name: string, input?: unknown): Promise<Output>
  /** Resolves when it is gone. Default SIGTERM. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

export type ChildOptions = {
  args?: string[]
  /** Default: those of this process. */
  execArgv?: string[]
  env?: Record<string, string>
}

/** A program of this folder, by its name from here, that answers questions. */
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

/** Any program. What it writes is not kept, what it complains about is, for whoever has to say that it ended. */
export function spawnChild(file: string, { args = [], execArgv = process.execArgv, env = {} }: ChildOptions = {}): Child {
  const child = fork(file, args, { execArgv, env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  const program = basename(file)
  const complaints = keepEnd(child)
  const asked = new Map<number, { resolve: (output: never) => void; reject: (error: Error) => void }>()
  let questions = 0
  let hasExited = false
  const exited = once(child, 'exit').then(() => {
    hasExited = true
    for (const { reject } of asked.values()) reject(new Error(`${program} ended:\n${complaints()}`))
  })
  child.on('message', (message: Answer) => {
    const waiting = asked.get(message.answer)
    asked.delete(message.answer)
    if (message.error === undefined) waiting?.resolve(message.output as never)
    else waiting?.reject(new Error(`${program}: ${message.error}`))
  })
  return { pid: child.pid ?? 0, checkAlive, ask, stop }

  function checkAlive(): void {
    if (hasExited) throw new Error(`${program} has ended:\n${complaints()}`)
  }

  async function ask<Output>(name: string, input?: unknown): Promise<Output> {
    checkAlive()
    questions += 1
    const question = questions
    return await new Promise<Output>((resolve, reject) => {
      asked.set(question, { resolve, reject })
      child.send({ question, name, input } satisfies Question)
    })
  }

  async function stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (!hasExited) child.kill(signal)
    const impatience = setTimeout(() => child.kill('SIGKILL'), 30_000)
    await exited
    clearTimeout(impatience)
  }
}

/** The child's end. Questions are answered in any order. */
export function answerQuestions(answers: Record<string, (input: never) => unknown>): void {
  process.on('message', (message: unknown) => void answer(message))
  // Programs of others have their own way to end.
  process.on('disconnect', () => setTimeout(() => process.exit(0), 5_000).unref())

  async function answer(message: unknown): Promise<void> {
    if (typeof message !== 'object' || message === null || !('question' in message)) return
    const { question, name, input } = message as Question
    const act = name === 'ready' ? () => null : answers[name]
    // Somebody else in this process may know it.
    if (!act) return
    try {
      const output = await act(input as never)
      send({ answer: question, output })
    } catch (error) {
      send({ answer: question, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  }

  function send(message: Answer): void {
    if (process.connected) process.send?.(message)
  }
}

/** The end of what a process complained about. */
function keepEnd(child: ChildProcess): () => string {
  let kept = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    kept = (kept + text).slice(-4_000)
  })
  return () => kept
}
