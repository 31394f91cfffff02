/** Ten random schedules on one task each. test/slow/joins.test.ts plays a thousand, while processes die. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import moody from '../support/agents/moody-agent.ts'
import { playSchedules } from '../support/judge/join-schedules.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
afterAll(() => platform.close())

test('no input is lost, doubled or overtaken, whatever the schedule', async () => {
  await startOwnWorker(platform, [moody])
  expect(await playSchedules(platform, 10)).toEqual([])
})
