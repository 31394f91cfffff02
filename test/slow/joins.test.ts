/**
 * A thousand random schedules of sends, injects, merges, interrupts, decisions, cancels and rewinds, while workers and an API are killed again and again: no
 * input is lost, doubled or overtaken. JOIN_SCHEDULES sets how many are played.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seededRandom } from '../support/agents/scripts.ts'
import { playSchedules } from '../support/judge/join-schedules.ts'
import { type ApiProcess, type Platform, startPlatform } from '../support/platform/platform.ts'
import type { PlatformProcess } from '../support/platform/platform-process.ts'

const schedules = Number(process.env.JOIN_SCHEDULES ?? 1_000)
const agent = { AGENT_FILES: fileURLToPath(new URL('../support/agents/moody-agent.ts', import.meta.url)) }

let platform: Platform
let other: ApiProcess
let workers: PlatformProcess[]

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, env: { LEASE_MS: '3000', RECONCILE_MS: '500' } })
  other = await platform.startApi()
  workers = await Promise.all([platform.url, other.url].map(startWorker))
})
afterAll(() => platform.close())

test(`${schedules} schedules: no input is lost, doubled or overtaken, whatever dies`, { timeout: 60_000 + schedules * 5_000 }, async () => {
  const ended = new AbortController()
  const deaths = killAgainAndAgain(ended.signal)
  const faults = await playSchedules(platform, schedules).finally(() => ended.abort())
  expect(faults).toEqual([])
  expect(await deaths).toBeGreaterThan(schedules / 100)
})

/** Two workers, and the second API, through which about half of their calls go: one of them is killed at random, and another takes its place. */
async function killAgainAndAgain(signal: AbortSignal): Promise<number> {
  const random = seededRandom(26)
  let deaths = 0
  for (; !signal.aborted; deaths += 1) {
    await sleep(1_500 + random() * 1_500, undefined, { signal }).catch(() => {})
    const [oldest, ...rest] = workers
    if (random() < 0.3) {
      await other.kill('SIGKILL')
      other = await platform.startApi({ port: new URL(other.url).port })
    } else {
      await oldest?.kill('SIGKILL')
      workers = [...rest, await startWorker(random() < 0.5 ? other.url : platform.url)]
    }
  }
  return deaths
}

function startWorker(url: string): Promise<PlatformProcess> {
  return platform.startWorker({ ...agent, RIVULET_URL: url })
}
