/** Generator: yield updates, as in any async generator. The platform does the rest. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, delta, done, full, start, text } from '@rivulet/worker'

export default defineAgent(
  'generator',
  async function* (turn) {
    // Messages are numbered in the order in which they start; a first delta starts one, too.
    for (const word of ['The ', 'answer ', 'is ', 'forty-two.']) {
      yield delta(0, word)
      await sleep(20, undefined, { signal: turn.signal })
    }
    yield start(1, text('', 'code'))
    yield delta(1, '6 * 7')
    yield done(1)
    // Replaces message 0 and closes it: viewers and rows have the replacement.
    yield full(0, 'The answer is 42.')
  },
  { description: 'Knows the answer' },
)
