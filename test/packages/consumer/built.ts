/** An agent that is bundled into a worker. */
import { defineAgent, delta } from '@rivulet/worker'

export default defineAgent('built', async function* (turn) {
  yield delta(0, `Built for ${turn.text || 'a stranger'}`)
})
