/** `rivulet tail <task>`: streams a task, from its beginning or after a cursor, until it ends. Ctrl-C exits; the task continues. */
import { type Cursor, hasEnded, parseCursor } from '@rivulet/client'
import { type StreamFormat, streamFormatSchema } from '@rivulet/contract/fields'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { exitCodeOf, exitCodes } from '../../exit-code.ts'
import { readRawEvents } from '../../tasks/raw-events.ts'
import { parseTaskId } from '../../tasks/task-argument.ts'
import { closingLine, outcomeStyles, printChunks, printEvents, watchTask } from '../../tasks/watch-task.ts'
import { createTextCleaner } from '../../terminal/clean-text.ts'

type TailOptions = { url?: string; key?: string; after?: Cursor; follow?: boolean; json?: boolean; raw?: boolean; format?: StreamFormat }

export function addTailCommand(program: Command, context: Context): void {
  const command = program
    .command('tail')
    .description('watch a task, from its beginning')
    .argument('<task>', 'its id', parseTaskId)
    .option('--after <cursor>', 'only events after this cursor, such as 2-7', parseCursorOption)
    .option('--follow', 'keep streaming when the task has ended')
    .option('--json', 'print every event as a line of JSON')
    .addOption(new Option('--raw', 'print the event stream as the server sends it').conflicts('json'))
    .addOption(
      new Option('--format <name>', 'print the chunks of another format as lines of JSON')
        .choices(streamFormatSchema.options)
        .conflicts(['json', 'raw']),
    )
  addConnectionOptions(command).action((task: string, options: TailOptions) => tail(context, task, options))
}

async function tail(context: Context, id: string, options: TailOptions): Promise<void> {
  const { out, err, environment, onInterrupt, exitWith } = context
  const { after, follow = false } = options
  const connection = connectionOf(options, environment)
  const task = connect(connection).tasks.get(id)
  // An event stream is tried for ever; whether there is anything to be had is asked before.
  const { task: known } = await task.detail()
  const leaving = new AbortController()
  const dispose = onInterrupt(() => leaving.abort())
  const request = { signal: leaving.signal, after, follow }
  try {
    if (options.raw) {
      const clean = out.isInteractive ? createTextCleaner() : (text: string) => text
      const print = (text: string) => {
        out.write(clean(text))
        return out.flush()
      }
      await readRawEvents(connection, { task: id, ...request }, print).catch(unlessLeaving)
      exitWith(leaving.signal.aborted ? exitCodes.canceled : exitCodeOf((await task.detail()).task.status))
    } else if (options.format) {
      await printChunks(task, options.format, { out, ...request })
      exitWith(leaving.signal.aborted ? exitCodes.canceled : exitCodeOf((await task.detail()).task.status))
    } else if (options.json) {
      const status = await printEvents(task, { out, ...request })
      exitWith(leaving.signal.aborted ? exitCodes.canceled : exitCodeOf(status ?? known.status))
    } else {
      const state = await watchTask(task, { said: out, noted: out, ...request })
      if (leaving.signal.aborted) return exitWith(exitCodes.canceled)
      if (hasEnded(state.status)) err.write(`${err.style(outcomeStyles[state.status], await closingLine(task, state))}\n`)
      exitWith(exitCodeOf(state.status))
    }
  } finally {
    dispose()
  }

  function unlessLeaving(error: unknown): void {
    if (!leaving.signal.aborted) throw error
  }
}

function parseCursorOption(text: string): Cursor {
  const cursor = parseCursor(text)
  if (cursor === null) throw new InvalidArgumentError('A cursor must be <epoch>-<seq>, such as 2-7.')
  return cursor
}
