/** Every failpoint there is, with everything that can happen there: the story is told to its end, and no promise is broken. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../support/free-port.ts'
import type { PlatformProcess } from '../../support/platform-process.ts'
import { createArmedTree } from '../armed-tree.ts'
import { type Bench, startBench } from '../bench.ts'
import { violationsIn } from '../checker.ts'

const tree = createArmedTree()
tree.remove()
const ofWorkers = ['appended', 'claim answered', 'finish answered']
/** These are passed only when something else goes wrong. */
const notOnTheWay: Record<string, (bench: Bench, task: string) => Promise<unknown>> = {
  seized: (bench, task) => bench.crowd.cancel(task),
  fenced: (bench, task) => bench.crowd.cancel(task),
  reopened: async bench => {
    bench.noteLoss()
    await bench.server.client.flushall()
  },
}

let bench: Bench

beforeAll(async () => {
  bench = await startBench({ apis: 1, workers: 0 })
})
afterAll(() => bench.close())

describe.each([...new Set(tree.failpoints)])('at "%s"', failpoint => {
  test.each(['kill', 'throw', 'stall:4000'])('%s', { timeout: 180_000 }, async action => {
    const trap = { FAILPOINTS: `${failpoint}=${action}` }
    const [healthy = ''] = bench.urls
    const url = `http://127.0.0.1:${await freePort()}`
    const isOfWorker = ofWorkers.includes(failpoint)
    const api = await bench.startApi(url, isOfWorker ? {} : trap)
    const worker = await bench.startWorker({ RIVULET_URL: url, ...(isOfWorker && trap) })
    const successors: Promise<unknown>[] = []
    succeed(api, () => bench.startApi(url))
    succeed(worker, () => bench.startWorker({ RIVULET_URL: url }))
    bench.begin([url, healthy])
    const task = await bench.crowd.promise({ label: failpoint, turn: 1, words: 30, restMs: 30 })
    const viewer = bench.crowd.join(task)
    await viewer.until('it has begun', ({ text, state }) => text() !== '' || state().status === 'completed', { timeoutMs: 60_000 })
    await notOnTheWay[failpoint]?.(bench, task)
    expect(violationsIn(await bench.rest())).toEqual([])
    await Promise.all(successors)
    await Promise.all([...bench.workers(), ...bench.apis().filter(other => other.url === url)].map(process => process.kill('SIGTERM')))

    /** Whoever is killed by its failpoint is replaced, without one. */
    function succeed({ exited }: PlatformProcess, start: () => Promise<PlatformProcess>): void {
      void exited.then(({ signal }) => signal === 'SIGKILL' && successors.push(start()))
    }
  })
})
