/** What was done in the last minutes, as an operator sees it. */
import type { Activity } from '@rivulet/protocol'
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
    const refused = await client.get<ErrorReply>('/v1/agents/activity?minutes=0')
    expect([refused.status, refused.body.error.code]).toEqual([400, 'validation_failed'])
  }))
