/** Agents that ask: one before it pays, one with a form, two by tools that their caller runs. */
import { call, clientTools, defineTool, say, scriptedModel } from '@rivulet/agent'
import { defineAgent } from '@rivulet/worker'
import { z } from 'zod'

/** What has been paid in this process. */
export const paid: number[] = []

export const pay = defineTool({
  ...{ name: 'pay', description: 'Pays', input: z.object({ amount: z.number() }) },
  run: ({ amount }) => {
    paid.push(amount)
    return `paid ${amount}`
  },
})

/** Asks about each amount, then says that it is done. */
export function payerOf(...amounts: number[]) {
  return defineAgent('payer', async turn => {
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)?.content.type === 'tool_response'
        ? [say('Done.')]
        : [say('I will pay.'), ...amounts.map(amount => call('pay', { amount }))],
    )
    await turn.run({ model, tools: [pay], approve: () => ({ ask: { hold: 0 } }) })
  })
}

/** Sends what it was given. */
export const registrar = defineAgent('registrar', async turn => {
  const { action, content } = await turn.ask('who', { title: 'Who are you?', schema: z.object({ name: z.string() }), hold: 0 })
  await turn.send(`${action} ${JSON.stringify(content ?? null)}`)
})

/** Asks its caller for the place by a tool of its own. */
export const shopper = defineAgent('shopper', async turn => {
  const locate = defineTool({ name: 'locate', description: 'Where the user is', input: z.object({}), where: 'client' })
  await turn.run({ model: callerOf('locate'), tools: [locate] })
})

/** Asks by the first tool that its caller has sent. */
export const guide = defineAgent({
  ...{ name: 'guide', params: z.object({ tools: z.array(z.looseObject({ name: z.string() })).default([]) }) },
  run: async turn => {
    const { tools } = turn.params
    await turn.run({ model: callerOf(tools[0]?.name ?? 'none'), tools: clientTools(tools) })
  },
})

function callerOf(tool: string) {
  return scriptedModel(({ messages }) => {
    const last = messages.at(-1)?.content
    return last?.type === 'tool_response' ? [say(`You are in ${JSON.stringify(last.content)}.`)] : [call(tool, {})]
  })
}
