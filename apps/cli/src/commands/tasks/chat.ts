/** `rivulet chat <agent>`: a conversation in a terminal. Ctrl-C stops the turn that runs; at the prompt, Ctrl-C and Ctrl-D leave. */
import type { Json, TaskHandle } from '@rivulet/client'
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { exitCodes, UsageError } from '../../exit-code.ts'
import { parseJson } from '../../json-argument.ts'
import { readMessages } from '../../tasks/all-messages.ts'
import { collect, secretOption, secretsOf } from '../../tasks/secret-option.ts'
import { createTranscript } from '../../tasks/transcript.ts'
import { showTurn } from './run.ts'

type ChatOptions = { url?: string; key?: string; name?: string; params?: Json; secret?: string[] }

export function addChatCommand(program: Command, context: Context): void {
  const command = program
    .command('chat')
    .description('talk with an agent in the terminal')
    .argument('<agent>', 'the name of the agent, as rivulet agents lists it')
    .option('--name <name>', 'continue the task of this name, or create it')
    .option('--params <json>', 'parameters of a new task', parseJson)
    .option('--secret <variable>', secretOption, collect)
  addConnectionOptions(command).action((agent: string, options: ChatOptions) => chat(context, agent, options))
}

async function chat(context: Context, agent: string, { name, params, secret, ...options }: ChatOptions): Promise<void> {
  if (!context.out.isInteractive) throw new UsageError('rivulet chat needs a terminal; in a script, use rivulet run')
  const { url, ...connection } = connectionOf(options, context.environment)
  const client = connect({ url, ...connection })
  const secrets = secretsOf(secret, context.environment)
  const [known] = name === undefined ? [] : (await client.tasks.list({ agent, name, limit: 1 })).data
  let task: TaskHandle | null = known ? client.tasks.get(known.id) : null
  if (task) await showHistory(context, task)
  const history: string[] = []
  for (;;) {
    const line = await readLine(context, history)
    if (line === null) return
    if (line.trim() === '') continue
    const { handle, fromTurn } = await send(line)
    task = handle
    await showTurn(context, handle, { url, isJson: false, fromTurn })
    context.exitWith(exitCodes.completed)
  }

  async function send(input: string): Promise<{ handle: TaskHandle; fromTurn: number }> {
    if (task) return { handle: task, fromTurn: (await task.send(input, secrets)).number }
    const handle = await client.tasks.create({
      ...{ agent, input, ...secrets },
      ...(name !== undefined && { name }),
      ...(params !== undefined && { params }),
    })
    return { handle, fromTurn: handle.turn.number }
  }
}

async function showHistory({ out }: Context, task: TaskHandle): Promise<void> {
  const messages = await readMessages(task)
  const transcript = createTranscript({ said: out, noted: out, clock: () => performance.now() })
  transcript.show({ status: 'completed', messages, attempt: 1 })
  transcript.end()
}

/** Null when the person leaves. */
async function readLine({ out, prompt, onInterrupt, exitWith }: Context, history: string[]): Promise<string | null> {
  const leaving = new AbortController()
  const dispose = onInterrupt(() => {
    exitWith(exitCodes.canceled)
    leaving.abort()
  })
  try {
    out.freshLine()
    return await prompt('› ', leaving.signal, history)
  } finally {
    dispose()
  }
}
