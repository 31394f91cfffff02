/**
 * One story, told by an API and a worker that have traps in them, while another API is healthy. Whoever is killed by its trap is replaced by
 * one that has none, at the same address. What comes of it is judged by whoever asked.
 */
import { freePort } from '../support/free-port.ts'
import type { PlatformProcess } from '../support/platform-process.ts'
import type { Bench } from './bench.ts'
import type { History } from './history.ts'

export type Told = {
  task: string
  history: History
  /** The traps that sprang, as `committed: kill`. */
  sprung: string[]
}

/** Something that has to go wrong in the midst of it; `url` is the API with the traps. */
export type Disturbance = (bench: Bench, task: string, url: string) => Promise<unknown>

const ofWorkers = new Set(['appending', 'appended', 'claim answered', 'finish answered'])

/** On a bench without workers. Traps are those of `failpoints.ts`: `committed=kill`. */
export async function tellThrough(bench: Bench, traps: readonly string[], disturb?: Disturbance): Promise<Told> {
  const [healthy = ''] = bench.urls
  const url = `http://127.0.0.1:${await freePort()}`
  const successors: Promise<PlatformProcess>[] = []
  let isOver = false
  const own = await Promise.all([
    bench.startApi(url, { FAILPOINTS: trapsOf(traps, false) }).then(api => succeed(api, () => bench.startApi(url))),
    bench
      .startWorker({ RIVULET_URL: url, FAILPOINTS: trapsOf(traps, true) })
      .then(worker => succeed(worker, () => bench.startWorker({ RIVULET_URL: url }))),
  ])
  bench.begin([url, healthy])
  const task = await bench.crowd.promise({ label: traps.join(' '), turn: 1, words: 20, restMs: 20 })
  const viewer = bench.crowd.join(task)
  if (disturb) {
    await viewer.until('it has begun', ({ text, state }) => text() !== '' || state().status === 'completed', { timeoutMs: 60_000 })
    await disturb(bench, task, url)
  }
  const history = await bench.rest()
  isOver = true
  const all = [...own, ...(await Promise.all(successors))]
  await Promise.all(all.map(process => process.kill()))
  return { task, history, sprung: own.flatMap(({ lines }) => lines.flatMap(({ msg }) => /^failpoint (.+)$/.exec(msg)?.[1] ?? [])) }

  function succeed<T extends PlatformProcess>(process: T, start: () => Promise<PlatformProcess>): T {
    void process.exited.then(() => isOver || successors.push(start()))
    return process
  }
}

function trapsOf(traps: readonly string[], isOfWorker: boolean): string {
  return traps.filter(trap => ofWorkers.has(trap.slice(0, trap.indexOf('='))) === isOfWorker).join(',')
}
