/** What `test/flow/client.test.ts` proves with a few dozen runs, with hundreds, and that they leave nothing behind in the client. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { ownHeldMemory } from '../support/process/own-memory.ts'
import { runClients } from '../support/viewers/client-runs.ts'

const runs = 500
const minutes = 60_000

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

test(
  `${runs} runs over a network that breaks, splits, delays and repeats end with what is stored, in flat memory`,
  async () => {
    const held: number[] = []
    const seeds = Array.from({ length: runs }, (_, place) => 50_000 + place)
    const total = await runClients(platform, {
      ...{ seeds, lanes: 8 },
      onRun: done => {
        if (done % 100 === 0) held.push(ownHeldMemory() / 1024 / 1024)
      },
    })
    console.log(
      `${total.seeds.length} runs, ${total.connections} connections, ${total.replays} replays, ${total.repeatedPosts} repeated requests,`,
      `MiB held after each hundred: ${held.map(size => size.toFixed(1)).join(', ')}`,
    )
    expect(total.faults.slice(0, 3)).toEqual([])
    expect(total.seeds).toHaveLength(runs)
    expect(total.connections).toBeGreaterThan(1.5 * 3 * runs)
    // The first hundred load what is loaded once.
    expect((held.at(-1) ?? Number.POSITIVE_INFINITY) - (held[0] ?? 0)).toBeLessThan(8)
  },
  30 * minutes,
)
