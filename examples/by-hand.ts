/** By hand: open messages, write to them in any order, and leave. For several messages at once, and for what is not made of deltas. */
import { setTimeout as sleep } from 'node:timers/promises'
import { data, defineAgent, text } from '@rivulet/worker'

export default defineAgent(
  'by-hand',
  async turn => {
    const words = turn.input?.type === 'text' ? turn.input.text.split(/\s+/) : []
    // Two messages are open side by side: how far we are, and what we say.
    await turn.message(data({ done: 0, of: words.length }), async progress => {
      await turn.message(text('', 'markdown'), async message => {
        for (const [i, word] of words.entries()) {
          await sleep(20, undefined, { signal: turn.signal })
          await message.append(`${word.toUpperCase()} `)
          await progress.setData({ done: i + 1, of: words.length })
        }
        // Replaces all of it, and closes the message.
        await message.replace(text(`**${words.join(' ').toUpperCase()}**`, 'markdown'), { words: words.length })
      })
    })
  },
  { description: 'Says its input loudly, and how far it is' },
)
