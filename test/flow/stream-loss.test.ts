/** Redis loses data, contains garbage or is unavailable while viewers watch: they receive snapshots, and none of them ends with a wrong text. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { repeat, rest, say, scripted, seededRandom } from '../support/agents/scripts.ts'
import { hasNativeRedis, type PrivateRedis, startPrivateRedis } from '../support/engines/redis/private-redis.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { seedsUpTo } from '../support/seeds.ts'
import { until } from '../support/until.ts'
import { isLogged, resumeAtEvery, textsOf, type Viewer, watch } from '../support/viewers/viewer.ts'
import type { Frame } from '../support/viewers/viewer-connection.ts'

let redis: PrivateRedis
let platform: Platform

beforeAll(async () => {
  redis = await startPrivateRedis()
  platform = await startPlatform({ apis: 2, workers: 1, env: { REDIS_URL: redis.url } })
})
afterAll(async () => {
  await platform?.close()
  await redis.close()
})

const judged = (viewers: Viewer[]) => faultsOfViewers({ ...platform, redis: redis.client }, viewers, { log: false, isDisturbed: true })

describe('pushes that are lost', () => {
  test('cost nothing but a reading of the log', async () => {
    const { task } = await platform.client.createTask(scripted([repeat(60, say(0, 'word '), rest(20))], { input: 'go' }))
    const viewers = platform.urls.map(url => watch(task.id, { urls: [url] }))
    for (const words of [5, 20, 35]) {
      await Promise.all(viewers.map(viewer => viewer.until(`hears ${words} words`, ({ text }) => text().length >= words * 5)))
      await redis.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
    }
    expect(await faultsOfViewers({ ...platform, redis: redis.client }, viewers)).toEqual([])
    for (const viewer of viewers) {
      expect(viewer.journal.connections).toHaveLength(1)
      expect(viewer.frames().filter(({ data }) => data.type === 'snapshot')).toHaveLength(1)
    }
  })

  test('and malformed pushes do no harm', async () => {
    const { task } = await platform.client.createTask(scripted([repeat(20, say(0, 'word '), rest(20))], { input: 'go' }))
    const viewers = platform.urls.map(url => watch(task.id, { urls: [url] }))
    await Promise.all(viewers.map(viewer => viewer.until('hears it', ({ text }) => text() !== '')))
    const channel = platform.keys.channel(task.id)
    for (const rubbish of ['', 'x', '\n', '1-1', '0-0\n99-1', '2-1\n99-1\n{"type":"turn.finished"}', '9-9\n99-99\nnull', '0-0\nx\ny'])
      await redis.client.publish(channel, rubbish)
    expect(await judged(viewers)).toEqual([])
    for (const viewer of viewers) expect(viewer.text()).toBe('word '.repeat(20))
  })
})

describe('foreign entries in a log', () => {
  const foreign = (task: string): [string, string[]][] => {
    const event = { type: 'custom', task, turn: 1, attempt: 1, at: 0, name: 'n', data: 1 }
    return [
      ['bad JSON', ['event', '{"type":']],
      ['no JSON', ['event', '']],
      ['other fields', ['hello', 'world']],
      ['an unknown type', ['index', '0', 'event', JSON.stringify({ ...event, type: 'message.exploded' })]],
      ['a missing field', ['event', JSON.stringify({ type: 'message.delta', task, turn: 1, attempt: 1, at: 0 })]],
      ['line breaks', ['event', `{\n"type":"custom","task":"${task}","turn":1,"attempt":1,"at":0,\r"name":"id: 9-9","data":"\\n"}`]],
      ['another task', ['event', JSON.stringify({ ...event, task: crypto.randomUUID(), name: 'secret' })]],
      ['a turn that does not exist', ['event', JSON.stringify({ ...event, type: 'turn.resumed', turn: 999, response: 1 })]],
      ['an impossible time', ['event', JSON.stringify({ ...event, type: 'turn.queued', turn: 1, at: 1e300 })]],
      [
        'an index far away',
        [
          'event',
          JSON.stringify({ ...event, type: 'message.started', index: 9_999_999, author: 'agent', content: { type: 'text', text: '' } }),
        ],
      ],
      [
        'a delta that does not fit',
        ['event', JSON.stringify({ ...event, type: 'message.delta', index: 0, offset: 77, delta: { type: 'text', text: 'x' } })],
      ],
    ]
  }

  test.each(foreign(crypto.randomUUID()).map(([name], i) => [name, i] as const))(
    '%s: no viewer receives it, nothing stops',
    async (_, i) => {
      const { task } = await platform.client.createTask(scripted([repeat(15, say(0, 'word '), rest(20))], { input: 'go' }))
      const bystander = await platform.client.createTask(scripted([repeat(15, say(0, 'other '), rest(20))]))
      const viewers = platform.urls.map(url => watch(task.id, { urls: [url] }))
      const other = watch(bystander.task.id, { urls: platform.urls })
      await Promise.all(viewers.map(viewer => viewer.until('hears it', ({ text }) => text() !== '')))
      const fields = foreign(task.id)[i]?.[1] ?? []
      // Where the next entry would be, far behind, and beyond every epoch.
      await redis.client.xadd(platform.keys.stream(task.id), '*', ...fields)
      const fresh = platform.urls.flatMap(url => ['', '?from=start'].map(query => watch(task.id, { urls: [url], query })))
      expect(await judged([...viewers, ...fresh])).toEqual([])
      expect(await faultsOfViewers({ ...platform, redis: redis.client }, [other])).toEqual([])
      for (const viewer of [...viewers, ...fresh]) {
        expect(viewer.text()).toBe('word '.repeat(15))
        expect(JSON.stringify(viewer.frames())).not.toContain('secret')
      }
      for (const api of platform.apis) expect(api.hasExited()).toBe(false)
    },
  )

  test('in the very place of the next entry: the turn goes on in a new epoch', async () => {
    const { task } = await platform.client.createTask(scripted([repeat(30, say(0, 'word '), rest(20))], { input: 'go' }))
    const viewers = platform.urls.map(url => watch(task.id, { urls: [url] }))
    await Promise.all(viewers.map(viewer => viewer.until('hears it', ({ text }) => text() !== '')))
    await until('it is in the way', () => squat(task.id))
    expect(await judged(viewers)).toEqual([])
    for (const viewer of viewers) expect(viewer.text()).toBe('word '.repeat(30))
  })

  /** Takes the id after the last one; false when the worker was faster. */
  async function squat(task: string): Promise<boolean> {
    const stream = platform.keys.stream(task)
    const [last] = await redis.client.xrevrange(stream, '+', '-', 'COUNT', 1)
    const [epoch, seq] = (last?.[0] ?? '0-0').split('-').map(Number)
    return redis.client.xadd(stream, `${epoch}-${(seq ?? 0) + 1}`, 'event', 'mine').then(
      () => true,
      () => false,
    )
  }
})

describe('a Redis that forgets everything', () => {
  test('when a task has ended: the last cursor still gets 204, each time and at each API, and any other one a snapshot', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, 'word')], { input: 'go' }))
    const viewer = watch(task.id, { urls: platform.urls })
    await viewer.ended
    const last = viewer.cursor() ?? expect.fail('It heard nothing')
    await until('its end is noted', async () => (await platform.client.get(`/v1/tasks/${task.id}/events?after=${last}`)).status === 204)
    await redis.client.flushall()
    for (const url of [...platform.urls, ...platform.urls]) {
      await until('it knows the end', () => isOver(url, last))
      const before = watch(task.id, { urls: [url], after: '2-1' })
      await before.ended
      expect(before.frames()[0]?.data).toMatchObject({ type: 'snapshot', reason: 'gap' })
      expect(before.text()).toBe('word')
      expect(await isOver(url, before.cursor() ?? '0-0')).toBe(true)
    }

    async function isOver(url: string, cursor: string): Promise<boolean> {
      const response = await fetch(`${url}/v1/tasks/${task.id}/events?after=${cursor}`)
      await response.body?.cancel()
      return response.status === 204
    }
  })

  test.each(seedsUpTo(3))('in the middle of streams: all end right, and no viewer misses an event silently (%i)', async seed => {
    const random = seededRandom(seed)
    const tasks = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const { task } = await platform.client.createTask(scripted([repeat(40, say(0, 'word '), rest(25)), say(1, 'end')], { input: 'go' }))
        await platform.client.addTurn(task.id, { input: 'more', params: { steps: [repeat(4, say(0, 'again '), rest(20))] } })
        return task.id
      }),
    )
    const viewers = tasks.flatMap(task => platform.urls.map(url => watch(task, { urls: [url], query: '?from=start' })))
    const enough = 5 + Math.floor(random() * 150)
    await until('they speak', () => viewers.every(viewer => viewer.text().length > enough || viewer.state().turns.length > 1))
    const seen = viewers.map(viewer => viewer.frames().filter(isLogged))
    await redis.client.flushall()
    // Every viewer that was cut reconnects, with every cursor there was.
    viewers.push(...viewers.flatMap((viewer, i) => resumedEverywhere(viewer.journal.task, seen[i] ?? [])))
    expect(await judged(viewers)).toEqual([])
    for (const viewer of viewers) expect(textsOf(viewer)).toEqual(['go', 'word '.repeat(40), 'end', 'more', 'again '.repeat(4)])
  })
})

// Only a server from PATH keeps an append-only file, and its data when it is killed.
describe.skipIf(!hasNativeRedis)('a Redis that loses the end of its file', () => {
  test.each(seedsUpTo(2))('while viewers hold every cursor there was: each of them ends right (%i)', async seed => {
    const random = seededRandom(seed)
    const { task } = await platform.client.createTask(scripted([repeat(60, say(0, 'word '), rest(25)), say(1, 'end')], { input: 'go' }))
    const viewers = platform.urls.map(url => watch(task.id, { urls: [url], query: '?from=start' }))
    const before = 20 + Math.floor(random() * 100)
    await Promise.all(viewers.map(viewer => viewer.until('hears it', ({ text }) => text().length > before)))
    const mark = redis.mark()
    await Promise.all(viewers.map(viewer => viewer.until('hears more', ({ text }) => text().length > before + 50 + random() * 60)))
    await redis.kill()
    const seen = viewers.flatMap(viewer => [viewer.frames().filter(isLogged)])
    await redis.restart(mark)
    viewers.push(...seen.flatMap(past => resumedEverywhere(task.id, past)))
    expect(await judged(viewers)).toEqual([])
    for (const viewer of viewers) expect(textsOf(viewer)).toEqual(['go', 'word '.repeat(60), 'end'])
  })

  test('with the end of a turn in it: no viewer waits for an end that was sent already, or ends with half a text', async () => {
    const { task } = await platform.client.createTask(scripted([repeat(12, say(0, 'word '), rest(20)), rest(2_000)], { input: 'go' }))
    const viewers = platform.urls.map(url => watch(task.id, { urls: [url], query: '?from=start' }))
    await Promise.all(viewers.map(viewer => viewer.until('hears it', ({ text }) => text().length > 10)))
    const mark = redis.mark()
    await Promise.all(viewers.map(({ ended }) => ended))
    const { rows } = await platform.pg.query('select announced from turns where task = $1', [task.id])
    expect(rows).toEqual([{ announced: true }])
    const [past = []] = viewers.map(viewer => viewer.frames().filter(isLogged))
    await redis.kill()
    await redis.restart(mark)
    expect(await redis.client.xlen(platform.keys.stream(task.id))).toBeLessThan(past.length)
    viewers.push(...resumedEverywhere(task.id, past), ...platform.urls.map(url => watch(task.id, { urls: [url] })))
    expect(await judged(viewers)).toEqual([])
    for (const viewer of viewers) expect(textsOf(viewer)).toEqual(['go', 'word '.repeat(12)])

    await platform.client.addTurn(task.id, { input: 'more', params: { steps: [say(0, 'again')] } })
    const later = [...resumedEverywhere(task.id, past), ...platform.urls.map(url => watch(task.id, { urls: [url] }))]
    expect(await judged(later)).toEqual([])
    for (const viewer of later) expect(textsOf(viewer)).toEqual(['go', 'word '.repeat(12), 'more', 'again'])
  })

  test('or restarts with all of it: a new viewer gets everything, and one that resumes goes on', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, 'so far'), rest(60_000)], { input: 'go' }))
    const viewers = platform.urls.map(url => watch(task.id, { urls: [url], query: '?from=start' }))
    await Promise.all(viewers.map(viewer => viewer.until('hears it', ({ text }) => text() === 'so far')))
    const [past = []] = viewers.map(viewer => viewer.frames().filter(isLogged))
    await redis.kill()
    await redis.restart()
    const joined = platform.urls.map(url => watch(task.id, { urls: [url] }))
    await Promise.all(joined.map(viewer => viewer.until('sees it', ({ text }) => text() === 'so far')))
    const resumed = resumedEverywhere(task.id, past)
    await Promise.all(
      resumed.map(viewer => viewer.until('has caught up', ({ frames }) => frames().some(({ data }) => data.type === 'caught_up'))),
    )
    // The worker opens the log again, because it cannot know that nothing was lost, and writes its text once more.
    for (const viewer of [...viewers, ...resumed]) await viewer.until('shows it', ({ text }) => text() === 'so far')
    await until('it is canceled', async () => (await platform.client.post(`/v1/tasks/${task.id}/cancel`, {})).status === 200)
    expect(await judged([...viewers, ...joined, ...resumed])).toEqual([])
  })

  test('or loses all of it while no turn runs: no cursor goes back, and viewers receive later output', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, 'so far'), rest(3_000), say(0, ' and on')], { input: 'go' }))
    const viewers = platform.urls.map(url => watch(task.id, { urls: [url], query: '?from=start' }))
    await Promise.all(viewers.map(viewer => viewer.until('hears it', ({ text }) => text().startsWith('so far'))))
    const [past = []] = viewers.map(viewer => viewer.frames().filter(isLogged))
    await redis.client.flushall()
    viewers.push(...resumedEverywhere(task.id, past))
    expect(await judged(viewers)).toEqual([])
    for (const viewer of viewers) expect(textsOf(viewer)).toEqual(['go', 'so far and on'])
  })

  test('or is unavailable for a while: new viewers get 503, and connected viewers receive the rest', async () => {
    const { task } = await platform.client.createTask(scripted([repeat(60, say(0, 'word '), rest(25))], { input: 'go' }))
    const quiet = await platform.client.createTask(scripted([say(0, 'x')]))
    const viewers = platform.urls.map(url => watch(task.id, { urls: [url] }))
    await Promise.all(viewers.map(viewer => viewer.until('hears it', ({ text }) => text() !== '')))
    await redis.kill()
    const reply = await until('it is refused', async () => {
      const { status, body } = await platform.client.get<ErrorReply>(`/v1/tasks/${quiet.task.id}/events`)
      return status !== 200 && { status, code: body.error.code }
    })
    expect(reply).toEqual({ status: 503, code: 'dependency_unavailable' })
    await redis.restart()
    viewers.push(watch(quiet.task.id, { urls: platform.urls }))
    expect(await judged(viewers)).toEqual([])
  })
})

const resumedEverywhere = (task: string, past: readonly Frame[]) => resumeAtEvery(task, past, platform.urls)
