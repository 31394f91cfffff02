/** An agent that takes inputs until it has as many as its first input says, and says what it took. By hand, or with a model that lives in its process. */
import { setTimeout as sleep } from 'node:timers/promises'
import { say, scriptedModel } from '@rivulet/agent'
import { defineAgent } from '@rivulet/worker'

const words = ({ content }: { content: { type: string; text?: string } }) => content.text ?? content.type

const byHand = defineAgent('join-by-hand', async turn => {
  const wanted = turn.number === 1 ? Number(turn.text) : 0
  await turn.send(`heard ${turn.text}`)
  for (let taken = 0; taken < wanted; ) {
    const inputs = await turn.takeInputs()
    taken += inputs.length
    if (inputs.length > 0) await turn.send(`took ${inputs.map(words).join('+')}`)
    else await sleep(20, undefined, { signal: turn.signal })
  }
})

/** Its model repeats the last input, after a while, so that inputs come during its final message. */
const byRun = defineAgent('join-by-run', async turn => {
  const model = scriptedModel(
    ({ messages }) => [
      say(
        `heard ${messages
          .filter(({ author }) => author === 'user')
          .map(words)
          .join('+')}`,
      ),
    ],
    {
      chunks: 'words',
      delayMs: 150,
    },
  )
  await turn.run({ model })
})

export default [byHand, byRun]
