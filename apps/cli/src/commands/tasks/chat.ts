/** `rivulet chat <agent>`: a conversation in a terminal. Ctrl-C stops the turn that runs; at the prompt, Ctrl-C and Ctrl-D leave. */
import type { Json, TaskHandle } from '@rivulet/client'
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { exitCodes, UsageError } from '../../exit-code.ts'
import { readMessages } from '../../tasks/all-messages.ts'
import { createTranscript } from '../../tasks/transcript.ts'
import { parseJson, showTurn } from './run.ts'

type ChatOptions = { url?: string; key?: string; name?: string; params?: Json }

export function addChatCommand(program: Command, context: Context): void {
  const command = program
    .command('chat')
    .description('talk with an agent in the terminal')
    .argument('<agent>', 'the name of the agent, as rivulet agents lists it')
    .option('--name <name>', 'continue the task of this name, or create it')
    .option('--params <json>', 'parameters of a new task', parseJson)
  addConnectionOptions(command).action((agent: string, options: ChatOptions) => chat(context, agent, options))
}

async function chat(context: Context, agent: string, { name, params, ...given }: ChatOptions): Promise<void> {
  if (!context.out.isInteractive) throw new UsageError('rivulet chat needs a terminal; in a script, use rivulet run')
  const { url, ...connection } = connectionOf(given, context.environment)
  const client = connect({ url, ...connection })
  const [known] = name === undefined ? [] : (await client.tasks.list({ agent, name, limit: 1 })).data
  let task: TaskHandle | null = known ? client.tasks.get(known.id) : null
  if (task) await showHistory(context, task)
  const typed: string[] = []
  for (;;) {
    const line = await readLine(context, typed)
    if (line === null) return
    if (line.trim() === '') continue
    const fromTurn = await send(line)
    await showTurn(context, task as TaskHandle, { url, isJson: false, fromTurn })
    context.exitWith(exitCodes.completed)
  }

  async function send(input: string): Promise<number> {
    if (task) return (await task.send(input)).number
    const created = await client.tasks.create({
      agent,
      input,
      ...(name !== undefined && { name }),
      ...(params !== undefined && { params }),
    })
    task = created
    return created.turn.number
  }
}

async function showHistory({ out }: Context, task: TaskHandle): Promise<void> {
  const messages = await readMessages(task)
  const transcript = createTranscript({ said: out, noted: out, clock: () => performance.now() })
  transcript.show({ status: 'completed', messages, attempt: 1 })
  transcript.end()
}

/** Null when the person leaves. */
async function readLine({ out, prompt, onInterrupt, exitWith }: Context, typed: string[]): Promise<string | null> {
  const leaving = new AbortController()
  const dispose = onInterrupt(() => {
    exitWith(exitCodes.canceled)
    leaving.abort()
  })
  try {
    out.freshLine()
    return await prompt('› ', leaving.signal, typed)
  } finally {
    dispose()
  }
}
