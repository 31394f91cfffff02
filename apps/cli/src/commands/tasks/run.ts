/** `rivulet run <agent> "text"`: creates a task and streams it. Ctrl-C cancels the task; a second Ctrl-C exits at once. A line typed meanwhile is an input. */
import { hasEnded, type Json, openWaits, type TaskHandle, type TaskState } from '@rivulet/client'
import type { Command } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { exitCodeOf, exitCodes } from '../../exit-code.ts'
import { parseJson } from '../../json-argument.ts'
import { createPerson } from '../../tasks/ask-person.ts'
import { collect, secretOption, secretsOf } from '../../tasks/secret-option.ts'
import { sendFiles } from '../../tasks/send-files.ts'
import { createSteering } from '../../tasks/steering.ts'
import { closingLine, outcomeStyles, printEvents, watchTask } from '../../tasks/watch-task.ts'
import { sentenceOf } from '../../terminal/failure-sentence.ts'
import { toJsonLine } from '../../terminal/json-line.ts'
import type { Pen } from '../../terminal/pen.ts'

/** Ctrl-C arrives twice if npm forwards the signal that the terminal has sent to all processes. */
const sameKeyMs = 200

type RunOptions = {
  url?: string
  key?: string
  params?: Json
  name?: string
  secret?: string[]
  file?: string[]
  detach?: boolean
  json?: boolean
}

export function addRunCommand(program: Command, context: Context): void {
  const command = program
    .command('run')
    .description('create a task and stream it; the text of the agent goes to stdout')
    .argument('<agent>', 'the name of the agent, as rivulet agents lists it')
    .argument('[text]', 'the input; - reads it from stdin')
    .option('--params <json>', 'parameters of the task', parseJson)
    .option('--secret <variable>', secretOption, collect)
    .option('--name <name>', 'continue the task of this name, or create it')
    .option('--file <path>', 'send a file with the input; may be given several times', collect)
    .option('--detach', 'print the id of the task and exit')
    .option('--json', 'print every event as a line of JSON')
  addConnectionOptions(command).action((agent: string, text: string | undefined, options: RunOptions) => run(context, agent, text, options))
}

async function run(context: Context, agent: string, text: string | undefined, options: RunOptions): Promise<void> {
  const { url, ...connection } = connectionOf(options, context.environment)
  const client = connect({ url, ...connection })
  const said = text === '-' ? await context.readInput() : text
  // The files first: a model that reads in order then knows what the question is about.
  const input = [...(await sendFiles(client, options.file ?? [])), ...(said === undefined ? [] : [said])]
  const task = await client.tasks.create({
    agent,
    ...(input.length > 0 && { input }),
    ...(options.params !== undefined && { params: options.params }),
    ...(options.name !== undefined && { name: options.name }),
    ...secretsOf(options.secret, context.environment),
  })
  if (options.detach) return context.out.write(options.json ? toJsonLine({ task: task.task, turn: task.turn }) : `${task.id}\n`)
  return showTask(context, task, { url, isJson: options.json === true, fromTurn: task.turn.number })
}

/** `fromTurn`: earlier turns are not shown. */
export type ShowOptions = { url: string; isJson: boolean; fromTurn: number }

/** Streams the turns that this command has added to a task, below the task's id. */
export async function showTask(context: Context, task: TaskHandle, options: ShowOptions): Promise<void> {
  if (!options.isJson) context.err.write(`${context.err.style('dim', `task ${task.id}`)}\n`)
  return showTurn(context, task, options)
}

/** Streams a turn and those after it. Ctrl-C cancels them. */
export async function showTurn(context: Context, task: TaskHandle, { url, isJson, fromTurn }: ShowOptions): Promise<void> {
  // On one screen there is one pen: two could not know where the other has left the cursor.
  const noted = context.out.isInteractive && !isJson ? context.out : context.err
  const { signal, dispose } = cancelOnInterrupt(context, noted, task, url)
  try {
    await watch(context, noted, task, { url, signal, isJson, fromTurn })
  } finally {
    dispose()
  }
}

type Watching = { url: string; signal: AbortSignal; isJson: boolean; fromTurn: number }

async function watch(
  { out, err, prompt, onLine, exitWith }: Context,
  noted: Pen,
  task: TaskHandle,
  { url, signal, isJson, fromTurn }: Watching,
): Promise<void> {
  if (isJson) {
    const status = await printEvents(task, { out, signal, fromTurn })
    return exitWith(signal.aborted || !status ? exitCodes.canceled : exitCodeOf(status))
  }
  const ended = new AbortController()
  const person = createPerson({ task, prompt, noted, url, signal: AbortSignal.any([signal, ended.signal]) })
  const steering = createSteering({ task, noted, url })
  const dispose = onLine(steering.send)
  const onState = ({ turns }: TaskState) => {
    person.look(openWaits(turns))
    steering.look(turns)
  }
  let state: TaskState
  let next: number | null = fromTurn
  do {
    state = await watchTask(task, { said: out, noted, hidesInput: true, signal, fromTurn: next, onState })
    // The task may have ended while a line was on its way: it is the next turn then.
    next = signal.aborted ? null : await steering.unseen(state.turns)
  } while (next !== null)
  dispose()
  ended.abort()
  if (signal.aborted) return exitWith(exitCodes.canceled)
  if (hasEnded(state.status)) err.write(`${err.style(outcomeStyles[state.status], await closingLine(task, state))}\n`)
  exitWith(exitCodeOf(state.status))
}

function cancelOnInterrupt(
  { onInterrupt }: Context,
  noted: Pen,
  task: TaskHandle,
  url: string,
): { signal: AbortSignal; dispose: () => void } {
  const leaving = new AbortController()
  let canceledAt: number | null = null
  return { signal: leaving.signal, dispose: onInterrupt(interrupt) }

  function interrupt(): void {
    if (canceledAt === null) cancel()
    else if (performance.now() - canceledAt > sameKeyMs) leaving.abort()
  }

  function cancel(): void {
    canceledAt = performance.now()
    note('canceling; Ctrl-C again leaves the task to itself')
    task.cancel('Ctrl-C').catch(error => note(sentenceOf(error, url)))
  }

  function note(line: string): void {
    noted.freshLine()
    noted.write(`${line}\n`)
  }
}
