/** Agents as a user writes them, from the packages alone. */
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { RivuletError } from '@rivulet/protocol'
import { defineAgent, delta } from '@rivulet/worker'

export const greeter = defineAgent('greeter', async function* (turn) {
  for (const word of ['Hello, ', turn.text || 'stranger', '!']) yield delta(0, word)
})

/** Emits the second half of its answer when the file `go-on` exists, so that a test sees the first half alone. */
export const patient = defineAgent('patient', async function* (turn) {
  yield delta(0, 'Hello, ')
  while (!existsSync('go-on')) await sleep(20, undefined, { signal: turn.signal })
  yield delta(0, `${turn.text}!`)
})

export const strict = defineAgent('strict', async function* () {
  yield delta(0, 'I am strict. ')
  throw new RivuletError('validation_failed', 'This input is not allowed')
})
