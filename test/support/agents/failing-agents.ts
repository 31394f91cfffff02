/** Agents that fail in the ways in which an agent's own text could reach its viewers. */
import { createHash } from 'node:crypto'
import { AgentError, call, defineTool, openaiModel, runAgent, scriptedModel, user } from '@rivulet/agent'
import { defineAgent, delta, RivuletError, text, toolResponse } from '@rivulet/worker'
import { z } from 'zod'

/** What an exception may hold: where a database is, and how to get in. */
export const secret = 'connect ECONNREFUSED postgres://app:hunter2@db-7.internal:5432'

/** Uses its secret, and repeats it in an error, as clients of other services do. */
const keeper = defineAgent('keeper', async turn => {
  const { API_KEY = 'none' } = turn.secrets
  if (turn.number === 1 && turn.attempt === 1) throw new Error(`401 for the key ${API_KEY}`)
  await turn.send(createHash('sha256').update(API_KEY).digest('hex'))
})

/** Repeats its secret in errors of each kind. */
const leaker = defineAgent('leaker', async turn => {
  const refusal = `401 for the key ${turn.secrets.API_KEY}`
  const refuse = () => Promise.reject(new RivuletError('agent_error', refusal))
  const open = text('half')
  const look = defineTool({ name: 'look', description: 'Looks', input: z.object({}), run: refuse })
  const ways: Record<string, () => Promise<unknown>> = {
    'in a message': () => turn.message(open, refuse),
    'in a step': () =>
      turn.step('look', () => {
        turn.message(open)
        return refuse()
      }),
    'in a stream': () =>
      turn.autoSend(
        (async function* () {
          yield delta(0, 'half')
          await refuse()
        })(),
      ),
    'in a tool': () => turn.run({ model: scriptedModel([{ parts: [call('look')], stopReason: 'tool_use' }, 'done']), tools: [look] }),
    'across the cut of a long error': () =>
      turn.message(open, () => Promise.reject(new AgentError(`${'long '.repeat(398)}${turn.secrets.API_KEY}`))),
    'in a response by hand': () => turn.send(toolResponse('c1', 'look', { status: 401, why: [refusal] }, true)),
  }
  await ways[turn.text]?.()
})

export default [
  keeper,
  leaker,
  defineAgent('throws', async function* () {
    yield delta(0, 'half')
    throw new Error(secret)
  }),
  defineAgent('throws-in-scope', turn =>
    turn.message({ type: 'text', text: 'half', format: 'plain' }, async () => {
      throw new TypeError('fetch failed', { cause: new Error(secret) })
    }),
  ),
  defineAgent('throws-in-step', async turn => {
    await turn.step('look', async () => {
      await turn.send('half')
      turn.message({ type: 'text', text: 'open', format: 'plain' })
      throw secret
    })
  }),
  defineAgent('runs', async turn => {
    const model = openaiModel({ model: 'm', baseUrl: turn.params as string, apiKey: 'k', retry: { maxRetries: 0 } })
    await turn.autoSend(runAgent({ model, messages: [user('hi')] }))
  }),
  defineAgent('means-it', async () => {
    throw new RivuletError('agent_error', 'There is no order 7', { cause: new Error(secret) })
  }),
  defineAgent('means-it-in-a-run', async () => {
    throw new AgentError('There is no order 7')
  }),
]
