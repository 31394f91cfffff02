/** Says its text input back, a word a delta. */
import { defineAgent, delta } from '@rivulet/worker'

export const echo = defineAgent(
  'echo',
  async function* (turn) {
    const said = turn.input?.type === 'text' ? turn.input.text : JSON.stringify(turn.input)
    for (const word of said.match(/\s*\S+\s*/g) ?? []) yield delta(0, word)
  },
  { description: 'Says its input back, a word at a time' },
)
