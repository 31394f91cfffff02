/** `rivulet watch`: prints every change of tasks and turns as it happens, until Ctrl-C. */
import type { FeedEntry } from '@rivulet/client'
import { type FeedEntryType, feedEntryTypeSchema } from '@rivulet/protocol'
import { type Command, Option } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { toJsonLine } from '../../terminal/json-line.ts'

type WatchOptions = { url?: string; key?: string; agent?: string; type?: FeedEntryType[]; after?: string; json?: boolean }

export function addWatchCommand(program: Command, context: Context): void {
  const command = program
    .command('watch')
    .description('watch all tasks: print each change as it happens')
    .option('--agent <agent>', 'only tasks of this agent')
    .addOption(new Option('--type <type...>', 'only changes of these types').choices(feedEntryTypeSchema.options))
    .option('--after <seq>', 'also the changes after this place; 0-0 means all that are kept (default: from now on)')
    .option('--json', 'print every change as a line of JSON')
  addConnectionOptions(command).action((options: WatchOptions) => watch(context, options))
}

async function watch({ out, environment, onInterrupt }: Context, options: WatchOptions): Promise<void> {
  const { agent, type: types, after } = options
  const client = connect(connectionOf(options, environment))
  // An event stream is tried for ever; whether the API can be reached is asked before.
  await client.ready()
  const leaving = new AbortController()
  const dispose = onInterrupt(() => leaving.abort())
  try {
    for await (const entry of client.feed.follow({ agent, types, after, signal: leaving.signal })) {
      out.write(options.json ? toJsonLine(entry) : lineOf(entry))
      await out.flush()
    }
  } catch (error) {
    if (!leaving.signal.aborted) throw error
  } finally {
    dispose()
  }
}

function lineOf({ at, type, task, agent, turn, status, error }: FeedEntry): string {
  const about = turn === undefined ? task : `${task} turn ${turn}`
  return `${`${at} ${type.padEnd(13)} ${about} ${agent} ${status ?? ''}${error ? ` (${error.code})` : ''}`.trimEnd()}\n`
}
