/** Agents as a user writes them, from the packages alone. */
import { RivuletError } from '@rivulet/protocol'
import { defineAgent, delta } from '@rivulet/worker'

export const greeter = defineAgent('greeter', async function* (turn) {
  const name = turn.input?.type === 'text' ? turn.input.text : 'stranger'
  for (const word of ['Hello, ', name, '!']) yield delta(0, word)
})

export const strict = defineAgent('strict', async function* () {
  yield delta(0, 'I am strict. ')
  throw new RivuletError('validation_failed', 'This input is not allowed')
})
