/** Agents that ask: one before it pays, one with a form. */
import { call, defineTool, say, scriptedModel } from '@rivulet/agent'
import { defineAgent } from '@rivulet/worker'
import { z } from 'zod'

/** What has been paid in this process. */
export const paid: number[] = []

const pay = defineTool({
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
