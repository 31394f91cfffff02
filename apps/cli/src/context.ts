/** The environment of a command: its output, options and signals. */
import type { Pen } from './terminal/pen.ts'

export type Environment = Record<string, string | undefined>

export type Context = {
  environment: Environment
  /** stdout: the answer. */
  out: Pen
  /** stderr: everything about it. */
  err: Pen
  readInput(): Promise<string>
  /** Listens for Ctrl-C. Returns a function that stops listening; without a listener, Ctrl-C ends the program. */
  onInterrupt(listener: () => void): () => void
  /** Ctrl-C, or being told to stop. The listener sees to the end by itself. */
  onStop(listener: () => void): void
  /** The exit code. Default 0. */
  exitWith(code: number): void
}
