/**
 * An activity of Temporal's SDK that runs a task of Rivulet. Its context is made here, because Temporal's server is not in the registry: a try that fails
 * and the next one are two calls, as its worker would make them.
 */
import type { TaskEvent } from '@rivulet/client'
import type { Task } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { asyncLocalStorage, type Context, type Info } from '@temporalio/activity'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { createActivities } from './temporal/activities.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
afterAll(() => platform.close())

const counter = defineAgent('counter', async function* () {
  for (const word of ['one ', 'two ', 'three ', 'four']) yield { type: 'delta', index: 0, delta: { type: 'text', text: word } }
})
const sleeper = defineAgent('sleeper', turn => turn.sleep('long', { for: '1h' }))

test('a try after one that failed finds the same task, goes on behind the last heartbeat, and returns the whole text', async () => {
  await startOwnWorker(platform, [counter])
  const seen: TaskEvent[] = []
  const { runTask } = createActivities({ url: platform.url, onEvent: event => seen.push(event) })
  const beats: string[] = []
  const failing = (cursor: string) => {
    beats.push(cursor)
    if (beats.length === 2) throw new Error('the heartbeat failed')
  }
  await expect(inContext({ heartbeat: failing }, () => runTask('counter', 'go'))).rejects.toThrow('the heartbeat failed')
  const text = await inContext({ heartbeat: cursor => beats.push(cursor), details: beats.at(-1) }, () => runTask('counter', 'go'))
  expect(text).toBe('one two three four')
  expect(seen.filter(({ type }) => type === 'turn.started')).toHaveLength(1)
  expect(seen.filter(({ type }) => type === 'turn.finished')).toHaveLength(1)
  const { body } = await platform.client.get<{ data: Task[] }>('/v1/tasks?agent=counter')
  expect(body.data).toHaveLength(1)
})

test('a cancel of the activity cancels the task', async () => {
  await startOwnWorker(platform, [sleeper])
  const { runTask } = createActivities({ url: platform.url })
  const canceling = new AbortController()
  const running = inContext({ heartbeat: () => {}, signal: canceling.signal, activityId: '2' }, () => runTask('sleeper', 'go'))
  running.catch(() => {})
  const find = async () => (await platform.client.get<{ data: Task[] }>('/v1/tasks?agent=sleeper')).body.data[0]
  await until('it waits', async () => (await find())?.status === 'waiting')
  canceling.abort(new Error('canceled'))
  await expect(running).rejects.toThrow()
  expect((await find())?.status).toBe('canceled')
})

type Attempt = { heartbeat: (cursor: string) => void; details?: string | undefined; signal?: AbortSignal; activityId?: string }

/** What an activity uses of its context. */
function inContext<T>(
  { heartbeat, details, signal = new AbortController().signal, activityId = '1' }: Attempt,
  work: () => Promise<T>,
): Promise<T> {
  const workflowExecution = { workflowId: 'case-1', runId: 'run-1' }
  const info: Partial<Info> = { workflowExecution, activityId, heartbeatDetails: details }
  return asyncLocalStorage.run({ info, heartbeat, cancellationSignal: signal } as Context, work)
}
