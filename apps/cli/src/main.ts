/** `rivulet`: the command line, for people and for the npm scripts of this repository. */
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { Context } from './context.ts'
import { exitCodes } from './exit-code.ts'
import { watchLaunchers } from './launchers.ts'
import { root } from './platform/programs.ts'
import { createPen, runCommand } from './run-command.ts'
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

await runCommand(context, process.argv.slice(2), readVersion())
process.exit(exitCode)

function onInterrupt(listener: () => void): () => void {
  process.off('SIGINT', leave)
  process.on('SIGINT', listener)
  return () => {
    process.on('SIGINT', leave)
    process.off('SIGINT', listener)
  }
}

/** A Ctrl-C between the end of the command and that of the process keeps the exit code. */
function leave(): void {
  process.exit(exitCode)
}

function readVersion(): string {
  return JSON.parse(readFileSync(`${root}package.json`, 'utf8')).version
}
