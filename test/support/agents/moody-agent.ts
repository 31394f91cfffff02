/** Takes inputs at times, asks at times, and fails at times. Its mood is that of the seed of its task and of the turn, so a schedule is the same again. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from '@rivulet/worker'
import { seededRandom } from './scripts.ts'

export default defineAgent({
  ...{ name: 'moody', maxAttempts: 3 },
  run: async turn => {
    // The same in every attempt: a turn that goes on after a wait must ask for the same again.
    const asks = seededRandom(Number(turn.params) * 1_000 + turn.number)
    const random = seededRandom(Number(turn.params) * 1_000 + turn.number * 10 + turn.attempt)
    for (let round = 0; round < 3; round += 1) {
      await turn.step(`round ${round}`, () => turn.send(`round ${round} of turn ${turn.number}`).then(() => null))
      await sleep(random() * 60, undefined, { signal: turn.signal })
      if (random() < 0.6) await turn.takeInputs()
      if (asks() < 0.1) await turn.ask(`ask ${round}`, { title: 'Go on?', hold: asks() < 0.5 ? '0s' : '200ms' })
      if (random() < 0.07) throw new Error('out of sorts')
    }
  },
})
