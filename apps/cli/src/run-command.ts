/** Runs one command line. A failure is printed as one sentence, and gives the exit code. */
import { InvalidEnvironment } from '@rivulet/runtime/environment'
import { CommanderError } from 'commander'
import { urlOf } from './connection.ts'
import type { Context } from './context.ts'
import { exitCodes, UsageError } from './exit-code.ts'
import { createProgram } from './program.ts'
import { sentenceOf } from './terminal/failure-sentence.ts'

export type { Context } from './context.ts'
export { createPen, type Pen } from './terminal/pen.ts'

export async function runCommand(context: Context, args: readonly string[], version: string): Promise<void> {
  const { out, err, environment } = context
  let given: { url?: string } = {}
  const program = createProgram(context, version).hook('preAction', (_, command) => {
    given = command.opts()
  })
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    context.exitWith(tell(error))
  }
  // What a pipe has not taken yet would be lost.
  await Promise.all([out.flush(), err.flush()])

  /** Prints the error, and returns its exit code. */
  function tell(error: unknown): number {
    // Commander has said it already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.completed : exitCodes.usage
    out.status(null)
    out.freshLine()
    err.write(`${err.style('red', sentenceOf(error, urlOf(given, environment)))}\n`)
    if (error instanceof InvalidEnvironment) return exitCodes.configuration
    return error instanceof UsageError ? exitCodes.usage : exitCodes.failed
  }
}
