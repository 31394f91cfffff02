/**
 * Five thousand open viewers of one API process, over real sockets: what each of them costs while nothing happens, and whether each of them
 * hears everything, once, when everything happens.
 */
import { defineAgent, delta } from '@rivulet/worker'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { metric } from '../support/platform/metrics.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { collectingOptions, heldMemory } from '../support/process/collect-garbage.ts'
import { openFileLimit } from '../support/process/open-files.ts'
import { until } from '../support/until.ts'
import { type Viewer, watch } from '../support/viewers/viewer.ts'

const taskCount = 250
const viewerCount = 5_000
const words = Array.from({ length: 40 }, (_, i) => `word ${i} `)
/** What an idle viewer may cost the process, all of it: its socket in Node, its place in the hub. The goal is 15 KB. */
const maxKilobytes = 20

const needed = viewerCount + 500
const isTooLow = openFileLimit() < needed
const because = isTooLow ? ` (skipped: ${needed} open files are needed, ${openFileLimit()} are allowed; see ulimit -n)` : ''

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, env: collectingOptions })
})
afterAll(() => platform?.close())

test.skipIf(isTooLow)(`five thousand viewers of one process hear everything once${because}`, { timeout: 900_000 }, async () => {
  const [api] = platform.apis
  if (!api) throw new Error('There is no API')
  let speak = () => {}
  const told = new Promise<void>(resolve => {
    speak = resolve
  })
  const patient = defineAgent('patient', async function* () {
    yield delta(0, 'begin ')
    await told
    for (const word of words) {
      yield delta(0, word)
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  })
  await startOwnWorker(platform, [patient], { concurrency: taskCount })
  const tasks: string[] = []
  for (let i = 0; i < taskCount; i += 1) tasks.push((await platform.client.createTask({ agent: 'patient', input: `task ${i}` })).task.id)
  await until(
    'every task has begun',
    async () =>
      (await platform.client.get<{ data: { running: number }[] }>('/v1/agents')).body.data.some(({ running }) => running === taskCount),
    { timeoutMs: 120_000 },
  )

  // Connections that come and go first: what a process needs once, for its first thousand, is no viewer's share.
  const passing = await open(1_000)
  await Promise.all(passing.map(viewer => viewer.stop()))
  await until('they are gone', async () => (await metric(api.url, 'rivulet_viewers')) === 0)
  const viewers = await open(taskCount)
  const before = await memory()
  viewers.push(...(await open(viewerCount - taskCount)))
  expect(await metric(api.url, 'rivulet_viewers')).toBe(viewerCount)
  const after = await memory()
  const each = (of: 'held' | 'resident') => (after[of] - before[of]) / (viewerCount - taskCount) / 1_024
  console.log(`an idle viewer: ${each('held').toFixed(1)} KB of heap and buffers, ${each('resident').toFixed(1)} KB resident`)
  expect(each('held')).toBeLessThan(maxKilobytes)

  const usage = await cpuSeconds()
  const began = performance.now()
  speak()
  await Promise.all(viewers.map(({ ended }) => ended))
  const seconds = (performance.now() - began) / 1_000
  const deliveries = viewers.reduce((sum, viewer) => sum + viewer.frames().length, 0)
  const cost = (((await cpuSeconds()) - usage) / deliveries) * 1_000_000
  console.log(`${deliveries} frames to ${viewerCount} viewers in ${seconds.toFixed(1)} s, ${cost.toFixed(1)} µs of the API each`)
  expect(await faultsOfViewers(platform, viewers)).toEqual([])
  for (const viewer of viewers) {
    expect(viewer.journal.connections).toHaveLength(1)
    expect(viewer.text()).toBe(`begin ${words.join('')}`)
  }
  for (const reason of ['slow', 'gap']) expect(await metric(api.url, 'rivulet_snapshots_sent_total', { reason })).toBe(0)

  /** More viewers, spread over the tasks; a few hundred at a time, as many as a listening socket lets wait. */
  async function open(count: number): Promise<Viewer[]> {
    const opened: Viewer[] = []
    while (opened.length < count) {
      const wave = Array.from({ length: Math.min(250, count - opened.length) }, (_, i) =>
        watch(tasks[(opened.length + i) % taskCount] ?? '', { urls: [platform.url] }),
      )
      await Promise.all(
        wave.map(viewer => viewer.until('is up to date', ({ frames }) => frames().some(({ data }) => data.type === 'caught_up'))),
      )
      opened.push(...wave)
    }
    return opened
  }

  async function memory(): Promise<{ held: number; resident: number }> {
    if (!api) throw new Error('There is no API')
    const held = await heldMemory(api)
    return { held, resident: await metric(api.url, 'process_resident_memory_bytes') }
  }

  function cpuSeconds(): Promise<number> {
    return metric(platform.url, 'process_cpu_seconds_total')
  }
})
