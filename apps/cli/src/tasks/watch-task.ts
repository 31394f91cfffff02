/** Prints a task to the terminal while it runs, and its outcome. */
import { type Cursor, compareCursors, isLogged, type OutcomeStatus, type TaskHandle, type TaskStatus } from '@rivulet/client'
import type { StreamFormat } from '@rivulet/contract/fields'
import type { Failure, TaskState, TurnFailure } from '@rivulet/protocol'
import type { Context } from '../context.ts'
import { cleanLine } from '../terminal/clean-text.ts'
import { formatDuration } from '../terminal/duration.ts'
import { toJsonLine } from '../terminal/json-line.ts'
import { storyOf, tellTask } from './task-story.ts'
import { createTranscript, type Story, type TranscriptOptions } from './transcript.ts'

export type WatchOptions = Pick<TranscriptOptions, 'said' | 'noted' | 'hidesInput'> & {
  signal: AbortSignal
  /** Events at or before this cursor are not printed. */
  after?: Cursor | undefined
  follow?: boolean
  /** Messages of earlier turns are not printed. */
  fromTurn?: number
  /** Called after every event. */
  onState?: (state: TaskState) => void
}

/** The status at the end; the last known one when the signal came first. */
export async function watchTask(
  task: TaskHandle,
  { signal, after, follow = false, fromTurn = 1, onState, ...pens }: WatchOptions,
): Promise<TaskState> {
  const transcript = createTranscript({ ...pens, clock: () => performance.now() })
  let last: TaskState | null = null
  let hasBegun = fromTurn === 1
  try {
    for await (const { event, state } of tellTask(task, { signal, follow })) {
      last = state
      if (!hasBegun) hasBegun = skipEarlierTurns(storyOf(state))
      if (after !== undefined && compareCursors(event.cursor, after) <= 0) transcript.skip(storyOf(state))
      else transcript.show(storyOf(state))
      await pens.said.flush()
      onState?.(state)
    }
  } catch (error) {
    if (!signal.aborted || !last) throw error
  } finally {
    transcript.end()
  }
  if (!last) throw new Error(`The stream of task ${task.id} ended without a turn`)
  return last

  /** Takes the messages of earlier turns as read, and returns whether there is one of the turns that are shown. */
  function skipEarlierTurns(story: Story): boolean {
    const earlier = story.messages.filter(message => message.turn < fromTurn)
    transcript.skip({ ...story, messages: earlier })
    return earlier.length < story.messages.length
  }
}

/** The same for programs: every event as a line of JSON. */
export async function printEvents(
  task: TaskHandle,
  {
    out,
    signal,
    after,
    follow = false,
    fromTurn = 1,
  }: { out: Context['out']; signal: AbortSignal; after?: Cursor | undefined; follow?: boolean; fromTurn?: number },
): Promise<TaskStatus | null> {
  let status: TaskStatus | null = null
  try {
    for await (const event of task.events({ signal, follow, ...(after !== undefined && { after }) })) {
      if (isLogged(event) && event.turn < fromTurn) continue
      out.write(toJsonLine(event))
      await out.flush()
      if (event.type === 'end') status = event.status
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return status
}

/** The same in another format: every chunk of it as a line of JSON. */
export async function printChunks(
  task: TaskHandle,
  format: StreamFormat,
  { out, signal, after, follow }: { out: Context['out']; signal: AbortSignal; after?: Cursor | undefined; follow: boolean },
): Promise<void> {
  try {
    for await (const { event, data } of task.chunks(format, { signal, follow, ...(after !== undefined && { after }) })) {
      if (event !== null) continue
      out.write(toJsonLine(data))
      await out.flush()
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** How the last turn ended, in a line; a failure says why, in full where the caller may know it. */
export async function closingLine(task: Pick<TaskHandle, 'detail'>, state: TaskState): Promise<string> {
  const turn = state.turns.at(-1)
  const took = turn?.startedAt && turn.finishedAt ? ` in ${formatDuration(Date.parse(turn.finishedAt) - Date.parse(turn.startedAt))}` : ''
  const used = Object.entries(turn?.usage ?? {}).map(([name, count]) => `, ${count} ${name}`)
  const why = turn?.error && state.status !== 'completed' ? `: ${await reasonOf(task, turn.number, turn.error)}` : ''
  const code = turn?.error && state.status === 'failed' ? ` (${turn.error.code})` : ''
  return cleanLine(`${state.status}${took}${used.join('')}${why}${code}`)
}

/** Events are the same for every viewer: what was thrown is in the turn itself. */
async function reasonOf(task: Pick<TaskHandle, 'detail'>, number: number, told: Failure): Promise<string> {
  const turns = await task.detail().then(
    detail => detail.turns,
    () => [],
  )
  return failureText(turns.find(turn => turn.number === number)?.error ?? told)
}

export function failureText({ message, detail }: TurnFailure): string {
  return detail ?? message
}

export const outcomeStyles = { completed: 'dim', failed: 'red', canceled: 'yellow' } as const satisfies Record<OutcomeStatus, string>
