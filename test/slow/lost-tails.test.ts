/**
 * A Redis that is killed and comes back without the end of its file, cut at any byte, while viewers hold every cursor that was ever given out:
 * none of them ends with a wrong word. Only a server from PATH keeps such a file.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fail, repeat, rest, type Step, say, seededRandom } from '../support/agents/scripts.ts'
import { hasNativeRedis, type PrivateRedis, startPrivateRedis } from '../support/engines/redis/private-redis.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { isLogged, resumeAtEvery, textsOf, type Viewer, watch } from '../support/viewers/viewer.ts'

const seeds = Array.from({ length: 50 }, (_, i) => i + 1)
const because = hasNativeRedis ? '' : ' (skipped: there is no redis-server or valkey-server on PATH)'

describe.skipIf(!hasNativeRedis)(`a Redis that loses the end of its file${because}`, () => {
  let redis: PrivateRedis
  let platform: Platform
  const sums = { viewers: 0, lost: 0, gaps: 0 }

  beforeAll(async () => {
    redis = await startPrivateRedis()
    platform = await startPlatform({ apis: 2, workers: 1, env: { REDIS_URL: redis.url } })
  })
  afterAll(async () => {
    console.log(`${sums.viewers} viewers, of whom ${sums.lost} held a cursor that was lost; ${sums.gaps} received a gap`)
    await platform?.close()
    await redis?.close()
  })

  test.each(seeds)('leaves no viewer with a wrong text, whatever cursor it holds (seed %i)', { timeout: 120_000 }, async seed => {
    const random = seededRandom(seed)
    const pick = (from: number, below: number) => from + Math.floor(random() * (below - from))
    const words = pick(15, 40)
    const first = story(words)
    const expected = ['go', ...textsIn(words)]
    // Now and then the tail is lost in a second attempt, or between two.
    const params = random() < 0.3 ? { attempts: { 1: [...first.slice(0, pick(1, 3)), fail('once')], 2: first } } : { steps: first }
    const { task } = await platform.client.createTask({ agent: 'scripted', input: 'go', params })
    if (random() < 0.5) {
      const more = pick(2, 8)
      await platform.client.addTurn(task.id, { input: 'more', params: { steps: story(more) } })
      expected.push('more', ...textsIn(more))
    }
    const viewers = platform.urls.map(url => watch(task.id, { urls: [url], query: '?from=start' }))

    const [early, late] = [pick(2, 12), pick(1, 20)]
    await heard(viewers, early)
    const kept = redis.mark()
    await heard(viewers, early + late)
    const end = redis.mark()
    await redis.kill()
    const seen = viewers.map(viewer => viewer.frames().filter(isLogged))
    await redis.restart(pick(kept, end + 1))
    const ids = new Set((await redis.client.xrange(platform.keys.stream(task.id), '-', '+')).map(([id]) => id))
    viewers.push(...seen.flatMap(past => resumeAtEvery(task.id, past, platform.urls)))

    expect(await faultsOfViewers({ ...platform, redis: redis.client }, viewers, { log: false, isDisturbed: true })).toEqual([])
    for (const viewer of viewers) expect(textsOf(viewer)).toEqual(expected)
    sums.viewers += viewers.length
    sums.lost += seen.flat().filter(({ id }) => !ids.has(id)).length
    sums.gaps += viewers.filter(viewer => viewer.frames().some(({ data }) => data.type === 'snapshot' && data.reason === 'gap')).length
  })
})

function story(words: number): Step[] {
  return [repeat(words, say(0, 'word '), rest(15)), say(1, 'and '), say(1, 'the end')]
}

function textsIn(words: number): string[] {
  return ['word '.repeat(words), 'and the end']
}

/** Until each has heard so many events, or all there are. */
async function heard(viewers: readonly Viewer[], events: number): Promise<void> {
  const hasEnded = (viewer: Viewer) => viewer.frames().some(({ data }) => data.type === 'end')
  await Promise.all(
    viewers.map(viewer => viewer.until(`hears ${events} events`, one => one.frames().filter(isLogged).length >= events || hasEnded(one))),
  )
}
