/** Agents that are bundled into a worker. */
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, delta } from '@rivulet/worker'

export default defineAgent('built', async function* (turn) {
  yield delta(0, `Built for ${turn.text || 'a stranger'}`)
})

/** Kills every worker that runs more than this turn. */
export const fatal = defineAgent('fatal', async turn => {
  if (!process.env.RIVULET_ISOLATED_TURN) process.kill(process.pid, 'SIGKILL')
  await turn.send('alone')
})

/** Ends when there is a file of the name that it got. */
export const lasting = defineAgent('lasting', async turn => {
  await turn.send('begun')
  while (!existsSync(turn.text)) await sleep(50)
  await turn.send('ended')
})
