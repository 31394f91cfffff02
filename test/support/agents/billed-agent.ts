/** An agent whose model writes a line to the file `params.bill` for each response that it charges for: complete, failed or aborted. */
import { appendFileSync } from 'node:fs'
import { AgentError, call, defineTool, fail, type Model, say, scriptedModel, wait } from '@rivulet/agent'
import type { Usage } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { z } from 'zod'

/** How an attempt ends. The worker is killed inside a tool; `hang` and `slow` last until they are canceled, in a tool and in a response. */
export type BilledEnd = 'ok' | 'crash' | 'throw' | 'refused' | 'hang' | 'slow'

/** `ends` of the attempts; those beyond the last are `ok`. */
type BilledParams = { bill: string; rounds: number; ends: BilledEnd[] }

export const billedModel = 'gpt-4o-mini'

export default defineAgent('billed', async turn => {
  const { bill, rounds, ends } = turn.params as BilledParams
  const end = ends[turn.attempt - 1] ?? 'ok'
  const model = charging(bill, rounds, end)
  const work = defineTool({
    name: 'work',
    description: 'Works',
    input: z.object({ isLast: z.boolean() }),
    run: async ({ isLast }, { signal }) => {
      if (isLast && end === 'crash') process.kill(process.pid, 'SIGKILL')
      if (isLast && end === 'hang') await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
      return 'done'
    },
  })
  await turn.run({ model, tools: [work] })
  turn.usage.add(charge(bill, { inputTokens: 7 }), { model: billedModel })
  if (end === 'throw') throw new Error('The agent gives up')
})

function charging(bill: string, rounds: number, end: BilledEnd): Model {
  const scripted = scriptedModel(({ messages }) => {
    const round = messages.filter(({ content }) => content.type === 'tool_response').length + 1
    const usage = { inputTokens: 10 + Math.floor(Math.random() * 1_000), outputTokens: 1 + Math.floor(Math.random() * 100) }
    if (round <= rounds) return { parts: [say(`Round ${round}. `), call('work', { isLast: round === rounds })], usage }
    if (end === 'refused') return { parts: [say('I can'), fail('The provider is overloaded')], usage }
    if (end === 'slow') return { parts: [say('Let me think'), wait(600_000)], usage }
    return { parts: [say('All done.')], usage }
  })
  return {
    name: billedModel,
    stream: (request, options) => {
      const stream = scripted.stream(request, options)
      stream.result.then(
        ({ usage }) => usage && charge(bill, usage),
        error => error instanceof AgentError && error.partial?.usage && charge(bill, error.partial.usage),
      )
      return stream
    },
  }
}

function charge(bill: string, usage: Usage): Usage {
  appendFileSync(bill, `${JSON.stringify(usage)}\n`)
  return usage
}
