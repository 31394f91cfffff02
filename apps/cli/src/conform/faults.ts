/** One seed of faults: tasks of every kind run on two workers, while workers are killed and frozen, connections are cut and replies are withheld. */
import { type Bench, type Ending, leaseMs } from './bench.ts'
import type { ForeignWorker } from './foreign-worker.ts'
import { expectAnswer, expectOneResult, expectText } from './laws.ts'

const faults = ['kill', 'freeze', 'cut', 'withhold'] as const
/** The platform fails a turn whose worker has died three times. */
const deathsPerSeed = 2

type Random = () => number

export class FaultRun {
  readonly #bench: Bench
  readonly #random: Random
  /** Replies have their own generator: their number depends on the machine, and the faults must depend on the seed alone. */
  readonly #randomReply: Random
  readonly #workers: ForeignWorker[] = []
  #deaths = 0

  constructor(bench: Bench, seed: number) {
    this.#bench = bench
    this.#random = randomOf(seed)
    this.#randomReply = randomOf(~seed)
  }

  /** Returns how many tasks had not ended when each fault came. Throws what went wrong, for each task. */
  async run(): Promise<string> {
    for (let i = 0; i < 2; i += 1) this.#workers.push(await this.#bench.start())
    const tasks = [this.#echo(), this.#echo(), this.#echo(), this.#step(0), this.#step(1), this.#ask()]
    let running = tasks.length
    const judged = Promise.all(tasks.map(task => task.finally(() => (running -= 1))))
    // It is awaited after the faults, and may fail before.
    judged.catch(() => {})
    const runningAt: number[] = []
    for (let i = 0; i < 3; i += 1) {
      await this.#bench.pause(this.#between(200, 1_200))
      runningAt.push(running)
      await this.#disturb()
    }
    const violations = (await judged).filter(violation => violation !== null)
    await Promise.all(this.#workers.map(worker => worker.kill()))
    if (violations.length > 0) throw new Error(violations.join('; '))
    return `${tasks.length} tasks, of which ${runningAt.join(', ')} had not ended when a fault came`
  }

  async #echo(): Promise<string | null> {
    const words = Array.from({ length: this.#between(20, 80) }, () => Math.floor(this.#random() * 1e9).toString(36))
    const task = await this.#bench.task('conform-echo', words.join(' '), { pauseMs: this.#between(5, 60) })
    return judge('conform-echo', this.#bench.ending(task), end => expectText(end, words))
  }

  async #step(failures: number): Promise<string | null> {
    const task = await this.#bench.task('conform-step', 'go', { failures, pauseMs: this.#between(0, 1_500) })
    return judge('conform-step', this.#bench.ending(task), expectOneResult)
  }

  async #ask(): Promise<string | null> {
    const task = await this.#bench.task('conform-ask', 'go')
    const answered = this.#bench.openWait(task).then(wait => task.answer(wait, { action: 'accept' }))
    return judge(
      'conform-ask',
      Promise.all([this.#bench.ending(task), answered]).then(([end]) => end),
      expectAnswer,
    )
  }

  async #disturb(): Promise<void> {
    const { proxy } = this.#bench
    const fault = faults[Math.floor(this.#random() * faults.length)] ?? 'cut'
    const at = Math.floor(this.#random() * this.#workers.length)
    const worker = this.#workers[at]
    switch (this.#deaths < deathsPerSeed || (fault !== 'kill' && fault !== 'freeze') ? fault : 'cut') {
      case 'kill':
        this.#deaths += 1
        await worker?.kill()
        this.#workers[at] = await this.#bench.start()
        return
      case 'freeze':
        this.#deaths += 1
        worker?.signal('SIGSTOP')
        await this.#bench.pause(leaseMs + this.#between(500, 1_500))
        worker?.signal('SIGCONT')
        return
      case 'cut':
        proxy.cut()
        await this.#bench.pause(this.#between(100, 800))
        return proxy.heal()
      case 'withhold':
        proxy.withhold(call => call !== 'claim' && call !== 'hello' && this.#randomReply() < 0.5)
        await this.#bench.pause(this.#between(300, 1_000))
        return proxy.heal()
    }
  }

  #between(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least))
  }
}

async function judge(agent: string, ending: Promise<Ending>, expect: (end: Ending) => void): Promise<string | null> {
  try {
    expect(await ending)
    return null
  } catch (error) {
    return `${agent}: ${(error as Error).message}`
  }
}

/** mulberry32: the same numbers for the same seed. */
function randomOf(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
