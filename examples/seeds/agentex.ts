/**
 * Agentex' ways to stream, in one turn: auto send of a provider's stream, a message by hand that is transformed before it is sent, a message that is replaced
 * at once, and a call with its response, whole. Each message has its own index, and the server accumulates and stores.
 */
import { say, scriptedModel } from '@rivulet/agent'
import { data, defineAgent, text, toolRequest, toolResponse } from '@rivulet/worker'

const provider = scriptedModel(() => [say('Streamed by auto send.')])

export default defineAgent('agentex', async turn => {
  const sent = await turn.autoSend(provider.stream({ messages: await turn.history() }, { signal: turn.signal }))
  await turn.message(text(), async message => {
    for (const chunk of ['not ', 'so ', 'loud']) await message.append(chunk.toUpperCase())
  })
  const draft = turn.message(text('A draft'))
  await draft.append(' that is not kept')
  await draft.replace(text('The final version'))
  await turn.send(toolRequest('c1', 'count', { text: sent.text }))
  await turn.send(toolResponse('c1', 'count', { words: sent.text.split(' ').length }))
  await turn.send(data({ done: true }))
})
