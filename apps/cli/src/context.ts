/** The environment of a command: its output, options and signals. */
import type { Prompt } from './tasks/ask-person.ts'
import type { Pen } from './terminal/pen.ts'

export type Environment = Record<string, string | undefined>

export type Context = {
  environment: Environment
  /** stdout: the result of the command. */
  out: Pen
  /** stderr: everything about it. */
  err: Pen
  readInput(): Promise<string>
  /** A line that the person types; null when stdin is no terminal, Ctrl-D closes it, or the signal fires. */
  prompt: Prompt
  /** Listens for lines that the person types while no prompt is open. Returns a function that stops listening. */
  onLine(listener: (line: string) => void): () => void
  /** Listens for Ctrl-C. Returns a function that stops listening; without a listener, Ctrl-C ends the program. */
  onInterrupt(listener: () => void): () => void
  /** Calls the listener once: at Ctrl-C, or at a signal to stop. The process ends when the listener's work is done. */
  onStop(listener: () => void): void
  /** The exit code. Default 0. */
  exitWith(code: number): void
}
