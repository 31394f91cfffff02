/**
 * A task from its input to its result, by requests that wait for the end (`?wait=`), for programs that need no events.
 *
 * The API stores the turn before the first wait, so a lost response costs nothing: the client repeats the POST under its Idempotency-Key.
 */
import type { CreateTaskInput } from '@rivulet/contract/tasks'
import { hasEnded, type Message, outcomeOf, RivuletError, type Task, type Turn } from '@rivulet/protocol'
import { callsOf } from '../http/calls.ts'
import type { CallOptions, Http } from '../http/http.ts'
import { pathOf } from '../http/path-of.ts'
import { readFields } from '../http/responses.ts'
import { readAll } from './left-out.ts'
import { failureOf, resultOf, type TaskResult } from './task-result.ts'

/** As `TaskResult`, of the turn that the input became. */
export type RunResult = Omit<TaskResult, 'turn'> & Readonly<{ task: Task; turn: Turn }>

type RunOptions = CallOptions & {
  idempotencyKey?: string
  waitMs: number
  /** For the requests about the task, once it is there. */
  httpOf: (id: string) => Http
}

type Waited = { task: Task; turn: Turn; messages?: Message[]; nextCursor?: number | null }

export async function runTask(http: Http, body: CreateTaskInput, options: RunOptions): Promise<RunResult> {
  const { waitMs, signal, idempotencyKey, httpOf } = options
  const query = { wait: `${waitMs}ms` }
  const created = await http.call({ method: 'POST', path: '/v1/tasks', query, body, idempotencyKey, signal, read: readWaited })
  const { id } = created.task
  const own = httpOf(id)
  const path = pathOf('tasks', id)
  const { number } = created.turn
  let waited = created
  while (!waited.messages) {
    waited = await own.call({ path: `${path}/turns/${number}`, query, signal, read: readWaited })
  }
  const { task, turn, messages, nextCursor = null } = waited
  const rest = nextCursor === null ? [] : await readRest(nextCursor)
  if (!hasEnded(turn.status)) throw new RivuletError('internal', 'The turn has not ended')
  const status = outcomeOf(turn.status)
  const result = { ...resultOf(status, turn, [...messages, ...rest]), task, turn }
  const failure = failureOf(status, turn, result)
  if (failure) throw failure
  return result

  function readRest(after: number): Promise<Message[]> {
    return readAll(page => callsOf(own, 'tasks', id).messages(page, { signal }), { turn: number, after })
  }
}

const readWaited = readFields<Waited>('task:task turn:turn messages?:message[] nextCursor?:json')
