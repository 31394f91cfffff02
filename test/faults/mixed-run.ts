/** Users who work while a nemesis harasses the platform, from one seed; then the verdict, with figures. */
import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../support/agents/scripts.ts'
import type { Bench } from './bench.ts'
import { violationsIn } from './checker/checker.ts'
import { type Figures, figuresOf } from './checker/figures.ts'
import type { Crowd } from './crowd.ts'
import { harass, type Strike } from './nemesis.ts'

export type MixedRun = { seed: number; users: number; known: readonly Strike[]; isOver: (strikes: number) => boolean }

export async function runMixed(
  bench: Bench,
  { seed, users, known, isOver }: MixedRun,
): Promise<{ violations: string[]; figures: Figures }> {
  const random = seededRandom(seed)
  const struck: string[] = []
  let isClosing = false
  const working = Promise.all(Array.from({ length: users }, (_, user) => work(bench.crowd, seed, user, () => isClosing)))
  working.catch(() => {})
  while (!isOver(struck.length)) {
    await sleep(random() * 1_200)
    struck.push(await harass(bench, random, known))
  }
  isClosing = true
  await bench.revive({ disarm: true })
  // A process that was stopped may have its grace until now: it counts as alive, and another takes its place only when it has ended.
  while (!(await Promise.race([working.then(() => true), sleep(500)]))) await bench.revive()
  const history = await bench.rest()
  const violations = violationsIn(history)
  return { violations, figures: figuresOf(history, struck, violations) }
}

/** One task after the other, each watched by several. */
async function work(crowd: Crowd, seed: number, user: number, isClosing: () => boolean): Promise<void> {
  const random = seededRandom(seed * 1_000 + user + 1)
  for (let n = 1; n === 1 || !isClosing(); n += 1) {
    const tell = (turnNumber: number) => ({
      ...{ label: `u${user}n${n}`, turnNumber, words: 5 + Math.floor(random() * 45), restMs: Math.floor(random() * 70) },
      succeedsAt: random() < 0.1 ? 2 : 1,
      asks: random() < 0.3 ? 1 + Math.floor(random() * 2) : 0,
    })
    const task = await crowd.promise(tell(1))
    const restless = seededRandom(seed + user + n)
    const viewers = [
      crowd.join(task),
      crowd.join(task, { cutAfter: connection => (connection < 8 ? 1 + Math.floor(restless() * 12) : null) }),
      crowd.join(task, random() < 0.5 ? { query: '?from=start' } : {}),
    ]
    if (random() < 0.4) await crowd.promiseTurn(task, tell(2))
    await sleep(random() * 1_500)
    viewers.push(crowd.join(task))
    if (random() < 0.15) await crowd.cancel(task)
    await Promise.all(viewers.map(({ ended }) => ended))
  }
}
