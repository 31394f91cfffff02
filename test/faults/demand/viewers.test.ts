/** A thousand viewers whose API dies come back at once, to the other one: each of them hears the rest. */
import { expect, test } from 'vitest'
import { faultsOfViewers } from '../../support/judge-viewers.ts'
import { withPlatform } from '../../support/platform.ts'
import { repeat, rest, say, scripted } from '../../support/scripts.ts'
import { watch } from '../../support/viewer.ts'

test('a thousand viewers come back at once', { timeout: 300_000 }, () =>
  withPlatform({ apis: 2, workers: 1, env: { LEASE_MS: '20000' } }, async platform => {
    const [first, second] = platform.apis
    const tasks = await Promise.all(
      Array.from(
        { length: 10 },
        async () => (await platform.client.createTask(scripted([repeat(200, say(0, 'word '), rest(100))]))).task.id,
      ),
    )
    const viewers = tasks.flatMap(task => Array.from({ length: 100 }, () => watch(task, { urls: [second?.url ?? '', first?.url ?? ''] })))
    await Promise.all(viewers.map(viewer => viewer.until('hears it begin', ({ text }) => text() !== '', { timeoutMs: 120_000 })))
    await second?.kill()
    expect(await faultsOfViewers(platform, viewers)).toEqual([])
    for (const viewer of viewers) expect(viewer.text()).toBe('word '.repeat(200))
  }),
)
