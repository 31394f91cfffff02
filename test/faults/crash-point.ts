/**
 * One story, played by an API and a worker with traps, while another API is healthy. A process that its trap kills is replaced by
 * one that has none, at the same address. No promise may be broken by it, and no trap may stay unsprung: then nothing was tried.
 */
import type { Failpoint } from '@rivulet/runtime/failpoint'
import { expect } from 'vitest'
import { freePort } from '../support/free-port.ts'
import type { PlatformProcess } from '../support/platform/platform-process.ts'
import type { Bench } from './bench.ts'
import { violationsIn } from './checker/checker.ts'
import type { History } from './checker/history.ts'

export type Told = {
  task: string
  history: History
}

/** Something that has to go wrong in the midst of it; `url` is the API with the traps. */
export type Disturbance = (bench: Bench, task: string, url: string) => Promise<unknown>

export const ofWorkers: ReadonlySet<string> = new Set<Failpoint>([
  'appending',
  'appended',
  'claim answered',
  'finish answered',
  'take answered',
  'joined',
  'holding',
])
/** Only a turn that asks passes these. */
const ofWaits: ReadonlySet<string> = new Set<Failpoint>(['asked', 'holding', 'parked', 'park answering', 'answered'])

/** Only a turn that spawns passes these. */
const ofChildren: ReadonlySet<string> = new Set<Failpoint>(['spawned', 'child ended'])

/** Only a turn that takes inputs passes these, and the story takes none: `demand/joins.test.ts` tries them. */
export const ofJoins: ReadonlySet<string> = new Set<Failpoint>(['taken', 'take answered', 'joined'])

/** The healthy API sees to what is left lying, and can be the first to do so: then the step was taken without its trap. */
const tellings = 20

/** `committed=kill`, as `failpoints.ts` reads it. */
export type Trap = `${Failpoint}=${string}`

/** On a bench without workers. */
export async function tellThrough(bench: Bench, traps: readonly Trap[], disturb?: Disturbance): Promise<Told> {
  const wanted = traps.map(trap => trap.replace('=', ': ').replace(/[:%]\S*$/, '')).sort()
  for (let telling = 1; ; telling++) {
    const { sprung, ...told } = await tellOnce(bench, traps, disturb)
    expect(violationsIn(told.history)).toEqual([])
    if (telling < tellings && sprung.length < wanted.length) continue
    expect(sprung).toEqual(wanted)
    return told
  }
}

async function tellOnce(bench: Bench, traps: readonly Trap[], disturb?: Disturbance): Promise<Told & { sprung: string[] }> {
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
  const asks = traps.some(trap => ofWaits.has(pointOf(trap))) ? 2 : 0
  const spawns = traps.some(trap => ofChildren.has(pointOf(trap))) ? 2 : 0
  const words = asks + spawns > 0 ? 30 : 20
  const task = await bench.crowd.promise({ label: traps.join(' '), turnNumber: 1, words, restMs: 20, asks, spawns })
  const viewer = bench.crowd.join(task)
  if (disturb) {
    await viewer.until('it has begun', ({ text, state }) => text() !== '' || state().status === 'completed', { timeoutMs: 60_000 })
    await disturb(bench, task, url)
  }
  const history = await bench.rest()
  isOver = true
  const all = [...own, ...(await Promise.all(successors))]
  // An end is announced before its worker is answered, and a trap may lie between the two.
  await own[1].kill('SIGTERM')
  await Promise.all(all.map(process => process.kill('SIGTERM')))
  const sprung = own.flatMap(({ lines }) => lines.flatMap(({ msg }) => /^failpoint (.+)$/.exec(msg)?.[1] ?? []))
  return { task, history, sprung: [...new Set(sprung)].sort() }

  function succeed<T extends PlatformProcess>(process: T, start: () => Promise<PlatformProcess>): T {
    void process.exited.then(() => isOver || successors.push(start()))
    return process
  }
}

function trapsOf(traps: readonly Trap[], isOfWorker: boolean): string {
  return traps.filter(trap => ofWorkers.has(pointOf(trap)) === isOfWorker).join(',')
}

function pointOf(trap: Trap): string {
  return trap.slice(0, trap.indexOf('='))
}
