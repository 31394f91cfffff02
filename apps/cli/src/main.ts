/** `rivulet`: the command line, for people and for the npm scripts of this repository. */
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { InvalidEnvironment } from '@rivulet/runtime/environment'
import { CommanderError } from 'commander'
import { urlOf } from './connection.ts'
import type { Context } from './context.ts'
import { exitCodes, UsageError } from './exit-code.ts'
import { watchLaunchers } from './launchers.ts'
import { root } from './platform/programs.ts'
import { createProgram } from './program.ts'
import { sentenceOf } from './terminal/failure-sentence.ts'
import { createPen } from './terminal/pen.ts'
import { createTypedLines } from './terminal/typed-lines.ts'

let exitCode: number = exitCodes.completed
const context: Context = {
  environment: process.env,
  out: createPen(process.stdout, process.env),
  err: createPen(process.stderr, process.env),
  readInput: () => text(process.stdin),
  ...createTypedLines(process.stdin, process.stderr),
  onInterrupt,
  onStop(listener) {
    let hasStopped = false
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, stopOnce)

    // Ctrl-C reaches this process twice: from the terminal and from npm.
    function stopOnce(): void {
      if (!hasStopped) listener()
      hasStopped = true
    }
  },
  exitWith(code) {
    exitCode = code
  },
}

// The reader of our output has closed the pipe: `rivulet tail … | head`.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? exitCodes.completed : exitCodes.failed))
}

// As by a SIGTERM that the launchers had passed on: a platform stops in order, and every other command just ends.
watchLaunchers(() => process.kill(process.pid, 'SIGTERM'))

let given: { url?: string } = {}
const program = createProgram(context, readVersion()).hook('preAction', (_, command) => {
  given = command.opts()
})
try {
  await program.parseAsync()
} catch (error) {
  exitCode = tell(error)
}
// What a pipe has not taken yet would be lost.
await Promise.all([context.out.flush(), context.err.flush()])
process.exit(exitCode)

/** Prints the error, and returns its exit code. */
function tell(error: unknown): number {
  // Commander has said it already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.completed : exitCodes.usage
  context.out.status(null)
  context.out.freshLine()
  context.err.write(`${context.err.style('red', sentenceOf(error, urlOf(given, process.env)))}\n`)
  if (error instanceof InvalidEnvironment) return exitCodes.configuration
  return error instanceof UsageError ? exitCodes.usage : exitCodes.failed
}

function onInterrupt(listener: () => void): () => void {
  process.on('SIGINT', listener)
  return () => {
    // A Ctrl-C between the end of the command and that of the process keeps the exit code.
    process.once('SIGINT', () => process.exit(exitCode))
    process.off('SIGINT', listener)
  }
}

function readVersion(): string {
  return JSON.parse(readFileSync(`${root}package.json`, 'utf8')).version
}
