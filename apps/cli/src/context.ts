/** What a command is given of the world around it. */
import type { Pen } from './terminal/pen.ts'

export type Environment = Record<string, string | undefined>

export type Context = {
  environment: Environment
  /** stdout: the answer. */
  out: Pen
  /** stderr: everything about it. */
  err: Pen
  readInput(): Promise<string>
  /** Ctrl-C. Answers how to stop listening; without a listener it ends the program. */
  onInterrupt(listener: () => void): () => void
  /** Ctrl-C, or being told to stop. The listener sees to the end by itself. */
  onStop(listener: () => void): void
  /** What the shell is told in the end. Default 0. */
  exitWith(code: number): void
}
