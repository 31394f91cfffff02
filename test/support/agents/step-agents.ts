/**
 * An agent whose steps leave a trace outside their process: each tells `params.url` that it is being taken, by which process,
 * and goes on when it is answered.
 */
import { defineAgent, delta, done, text } from '@rivulet/worker'

export default defineAgent('stepper', async turn => {
  const { url } = turn.params as { url: string }

  const draft = await turn.step('draft', async () => {
    await turn.send({ type: 'data', data: { plan: ['draft', 'review'] } }, { kind: 'plan' })
    const { text: said } = await turn.autoSend([delta(0, 'A draft, '), delta(0, 'in two parts.'), done(0, { usage: { outputTokens: 7 } })])
    return { said, taken: await tell('draft') }
  })

  await tell('between')

  const taken = await turn.step('review', async () => {
    await using message = turn.message(text('# ', 'markdown'), { metadata: { kind: 'review' } })
    await message.append('Reviewed')
    return tell('review')
  })

  await turn.send(`${draft.said} ${draft.taken} ${taken}`)
  await tell('after')

  /** How often this was called. */
  async function tell(what: string): Promise<number> {
    const response = await fetch(`${url}/${what}/${process.pid}`)
    if (!response.ok) throw new Error(`${what} was refused`)
    return Number(await response.text())
  }
})
