/** The agents that `rivulet conform` asks for, in TypeScript. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { RivuletError } from '@rivulet/protocol'
import { defineAgent, type Turn, text } from '@rivulet/worker'

type Params = { pauseMs?: number; failures?: number }
const paramsOf = ({ params }: Turn) => (params ?? {}) as Params
const pause = (turn: Turn) => sleep(paramsOf(turn).pauseMs ?? 0, undefined, { signal: turn.signal })

export const echo = defineAgent('conform-echo', turn =>
  turn.message(text(''), async message => {
    for (const word of turn.text.split(' ')) {
      await message.append(`${word} `)
      await pause(turn)
    }
  }),
)

export const step = defineAgent('conform-step', async turn => {
  await turn.send(await turn.step('draw', async () => randomUUID() as string))
  await pause(turn)
  if (turn.attempt <= (paramsOf(turn).failures ?? 0)) throw new RivuletError('agent_error', 'This attempt is to fail')
})

export const ask = defineAgent('conform-ask', async turn => {
  await turn.send('before')
  const { action } = await turn.ask('go', { title: 'May I?' })
  await turn.send(action)
})
