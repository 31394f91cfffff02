/** What was done in the last minutes, as an operator sees it. */
import type { Activity, ErrorGroup, Worker, WorkerVersion } from '@rivulet/contract/agents'
import { expect, test } from 'vitest'
import { withPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'

test('activity counts the turns that ended, for each agent and for all of them', () =>
  withPlatform({}, async ({ client }) => {
    expect((await client.get<Activity>('/v1/agents/activity')).body.data).toEqual([])
    await client.finishedTask({ agent: 'echo', input: 'a' })
    await client.finishedTask({ agent: 'echo', input: 'b' })
    await client.finishedTask({ agent: 'scripted', params: { steps: [{ throw: 'no' }] }, maxAttempts: 1 })
    const { status, body } = await client.get<Activity>('/v1/agents/activity?minutes=5')
    expect(status).toBe(200)
    expect(Date.parse(body.to) - Date.parse(body.from)).toBe(5 * 60_000)
    const sum = (agent: string | null, name: 'completed' | 'failed' | 'canceled') =>
      body.data.filter(row => row.agent === agent).reduce((total, row) => total + row[name], 0)
    expect([sum('echo', 'completed'), sum('scripted', 'failed'), sum('scripted', 'completed')]).toEqual([2, 1, 0])
    expect([sum(null, 'completed'), sum(null, 'failed'), sum(null, 'canceled')]).toEqual([2, 1, 0])
    for (const { at, runMs, slowRunMs, waitMs } of body.data) {
      expect(Date.parse(at) % body.bucketMs).toBe(0)
      expect(Number(runMs)).toBeGreaterThanOrEqual(0)
      expect(Number(slowRunMs)).toBeGreaterThanOrEqual(Number(runMs))
      expect(Number(waitMs)).toBeGreaterThanOrEqual(0)
    }
    const week = (await client.get<Activity>('/v1/agents/activity?minutes=10080')).body
    expect([week.bucketMs, week.queued.length]).toEqual([42 * 60_000, 240])
    expect(week.data.filter(row => row.agent === null).reduce((total, row) => total + row.completed, 0)).toBe(2)
    for (const bad of ['10081', '1e3', '-1']) expect((await client.get(`/v1/agents/activity?minutes=${bad}`)).status).toBe(400)
    const refused = await client.get<ErrorReply>('/v1/agents/activity?minutes=0')
    expect([refused.status, refused.body.error.code]).toEqual([400, 'validation_failed'])
  }))

test('a turn that waits is in the queue, and not in it when it has started', () =>
  withPlatform({ workers: 0 }, async ({ client, startWorker }) => {
    await client.post('/internal/hello', { worker: 'none', agents: [{ name: 'echo', description: '' }] })
    const { task } = await client.createTask({ agent: 'echo', input: 'x' })
    const depth = async () => (await client.get<Activity>('/v1/agents/activity?minutes=5')).body.queued.at(-1)
    expect(await depth()).toBe(1)
    await startWorker()
    await client.waitForEnd(task.id)
    expect(await depth()).toBe(0)
  }))

test('workers tell what they run, and failures are grouped by their reason', () =>
  withPlatform({}, async ({ client }) => {
    const { task } = await client.createTask({ agent: 'scripted', params: { steps: [{ sleep: 60_000 }] } })
    await client.waitForTask(task.id, detail => detail.task.status === 'running')
    const { body } = await client.get<{ data: Worker[] }>('/v1/workers')
    expect(body.data).toMatchObject([
      {
        isLive: true,
        version: '0.2.0',
        slots: 20,
        agents: expect.arrayContaining(['scripted']),
        turns: [{ task: task.id, turn: 1, agent: 'scripted' }],
      },
    ])
    const own = { version: '0.2.0', workers: 1, slots: 20, agents: expect.arrayContaining(['scripted']), queued: 0, waiting: 0 }
    const versions = async () => (await client.get<{ data: WorkerVersion[] }>('/v1/versions')).body.data
    expect(await versions()).toEqual([{ ...own, running: 1, isDrained: false }])
    await client.post(`/v1/tasks/${task.id}/cancel`, {})
    expect(await versions()).toEqual([{ ...own, running: 0, isDrained: true }])
    for (const reason of ['row 17 is empty', 'row 18 is empty', 'no luck'])
      await client.finishedTask({ agent: 'scripted', params: { steps: [{ throw: reason }] }, maxAttempts: 1 })
    const groups = (await client.get<{ data: ErrorGroup[] }>('/v1/errors')).body.data
    expect(groups.map(({ count, tasks, message, code }) => [count, tasks, message, code])).toEqual([
      [2, 2, 'row 18 is empty', 'agent_error'],
      [1, 1, 'no luck', 'agent_error'],
    ])
    expect((await client.get('/v1/errors?minutes=0')).status).toBe(400)
  }))
