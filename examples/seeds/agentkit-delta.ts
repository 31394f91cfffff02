/** Agentkit's `Delta` as plain values: begin, append, and no commit yet is a valid part in progress; metadata is replaced whole; a commit has the whole part. */
import { data, defineAgent, text } from '@rivulet/worker'

export default defineAgent('agentkit-delta', async turn => {
  await turn.message(text(), async message => {
    await message.append('Hello')
    await message.append(', world')
    await message.append({ type: 'metadata', metadata: { lang: 'en' } })
  })
  await turn.message(data(), async message => {
    await message.append({ type: 'data', value: { done: 1 } })
    await message.append({ type: 'data', value: { done: 2 } })
  })
})
