/**
 * Postgres fails over to its standby while users work: `npm run test:faults -- --only "Postgres fails over"`. With a synchronous standby, nothing may be
 * lost; the same seeds run it beside all other faults. With a standby that is behind, what was committed last is lost, and the rest goes on.
 */
import { migrate } from '@rivulet/api/migrate'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { type PostgresPair, startPostgresPair } from '../../support/engines/postgres-pair.ts'
import { createClient } from '../../support/platform/platform-client.ts'
import { until } from '../../support/until.ts'
import type { Viewer } from '../../support/viewers/viewer.ts'
import { startBench } from '../bench.ts'
import { violationsIn } from '../checker/checker.ts'
import { hasHeard, type Story } from '../checker/story.ts'
import { faultsOfTelling } from '../checker/telling.ts'
import { createJudge } from '../judge-runs.ts'
import { type Strike, strikesFor } from '../nemesis.ts'
import { readSettings } from '../settings.ts'

const { seed, runs } = readSettings(process.env)
const seeds = Array.from({ length: runs }, (_, i) => seed + i)
const strikesPerSeed = 8
let pair: PostgresPair | null = null
const start = async () => {
  pair = await startPostgresPair({ isSynchronous: true, prepare: migrate })
  return startBench({ pair })
}
const { judge, close } = createJudge(start, current => `npm run test:faults -- --only "Postgres fails over" --seed ${current}`)
const failOver: Strike = { name: 'Postgres fails over', strike: async () => void (await pair?.failOver().then(() => pair?.addStandby())) }

afterAll(close)

test('Postgres fails over to a synchronous standby under load', { timeout: 600_000 }, async () => {
  await judge({ seed, users: 8, known: [failOver], isOver: strikes => strikes >= 3 })
})

test.each(seeds)('Postgres fails over beside other faults, seed %i', { timeout: 600_000 }, async current => {
  const known = [...strikesFor({ mayLose: current % 2 === 1 }), ...Array.from({ length: 6 }, () => failOver)]
  await judge({ seed: current, users: 8, known, isOver: strikes => strikes >= strikesPerSeed })
})

test('Postgres fails over to a standby that is behind: what was committed last is lost, and the rest goes on', {
  timeout: 600_000,
}, async () => {
  const behind = await startPostgresPair({ isSynchronous: false, prepare: migrate })
  const bench = await startBench({ pair: behind })
  onTestFinished(async () => void (await bench.close()))
  const { crowd, urls, server } = bench
  const stories = new Map<string, Story>()
  const watched: Viewer[] = []

  const ended = await begin('ended', 5)
  const [running, ending, canceled] = await Promise.all([begin('running', 90), begin('ending', 40), begin('canceled', 90)])
  await ended.viewer.ended
  for (const { viewer } of [running, ending, canceled]) await viewer.until('its first words', heard => hasHeard(heard, 2))
  await behind.holdBack()
  // From here on, the standby knows of nothing.
  const lost = await Promise.all([begin('lost', 5), begin('lost and running', 90)])
  await lost[0]?.viewer.ended
  await tell(ended.task, { label: 'ended', turnNumber: 2, words: 5, restMs: 60 })
  const again = watch(ended.task)
  await again.ended
  await crowd.cancel(canceled.task)
  await Promise.all([canceled.viewer.ended, ending.viewer.ended])
  await lost[1]?.viewer.until('its first words', heard => hasHeard(heard, 2))
  bench.noteLoss()
  await behind.failOver(() => server.client.flushall())
  const old = watched.splice(0)
  const later = await begin('later', 20)
  for (const task of [ended, running, ending, canceled].map(each => each.task)) watch(task)
  await tell(ended.task, { label: 'ended', turnNumber: 2, words: 10, restMs: 60 })
  watch(ended.task)

  const client = createClient(() => urls[0] ?? '')
  for (const { task } of lost) expect((await client.get(`/v1/tasks/${task}`)).status).toBe(404)
  let waiting = old.length + watched.length
  for (const { ended } of [...old, ...watched]) void ended.then(() => (waiting -= 1))
  await until('no viewer waits any more', () => waiting === 0, { timeoutMs: 120_000 })
  const history = await bench.rest()
  const isKept = ({ task }: { task: string }) => !lost.some(each => each.task === task)
  const promised = [...stories].map(([key, story]) => ({ task: key.split(' ')[0] ?? '', story })).filter(isKept)
  expect(violationsIn({ ...history, promised, looks: [], viewers: watched.map(({ journal }) => journal) })).toEqual([])
  for (const { journal } of old) expect(faultsOfTelling(journal, turnNumber => stories.get(`${journal.task} ${turnNumber}`))).toEqual([])
  // What was lost is done again, or never was.
  for (const { task } of [running, ending, canceled, later])
    expect((await client.detail(task)).turns).toMatchObject([{ status: 'completed' }])

  async function begin(label: string, words: number): Promise<{ task: string; viewer: Viewer }> {
    const story = { label, turnNumber: 1, words, restMs: 60 }
    const task = await crowd.promise(story)
    stories.set(`${task} 1`, story)
    return { task, viewer: watch(task) }
  }

  async function tell(task: string, story: Story): Promise<void> {
    await crowd.promiseTurn(task, story)
    stories.set(`${task} ${story.turnNumber}`, story)
  }

  function watch(task: string): Viewer {
    const viewer = crowd.join(task, { finalStatuses: [204, 404] })
    watched.push(viewer)
    return viewer
  }
})
