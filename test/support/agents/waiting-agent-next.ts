/** The next version of the agent that waits: its code differs, its words do not. */
import { defineAgent } from '@rivulet/worker'
import { tell } from './waiting-agent.ts'

export default defineAgent('waiter', async turn => {
  await turn.step('greet', async () => 'hello')
  await tell(turn)
})
