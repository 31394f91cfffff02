/** A worker process of which nothing is known but its command. It gets signals with all that it has started. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const keptLines = 40

type WorkerExit = { code: number | null; reason: string }

export class ForeignWorker {
  readonly #child: ChildProcess
  readonly #lines: string[] = []
  /** Resolves when the process has ended, or could not start. */
  readonly exited: Promise<WorkerExit>
  hasExited = false

  constructor([program = '', ...args]: readonly string[], environment: Record<string, string | undefined>) {
    this.#child = spawn(program, args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    for (const stream of [this.#child.stdout, this.#child.stderr])
      if (stream) createInterface({ input: stream }).on('line', line => this.#note(line))
    this.exited = new Promise(resolve => {
      const end = (exit: WorkerExit) => {
        this.hasExited = true
        resolve(exit)
      }
      this.#child.once('error', error => end({ code: null, reason: error.message }))
      this.#child.once('exit', (code, signal) => end({ code, reason: signal ?? `code ${code}` }))
    })
  }

  /** What it wrote last. */
  get output(): string {
    return this.#lines.map(line => `    ${line}\n`).join('')
  }

  signal(name: NodeJS.Signals): void {
    if (this.#child.pid === undefined) return
    try {
      process.kill(-this.#child.pid, name)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL')
    await this.exited
  }

  #note(line: string): void {
    this.#lines.push(line)
    if (this.#lines.length > keptLines) this.#lines.shift()
  }
}
