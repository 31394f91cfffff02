/** By hand, or manual streaming: open messages and write to them in any order. For several messages at once, and for values that are not deltas. */
import { setTimeout as sleep } from 'node:timers/promises'
import { data, defineAgent, text } from '@rivulet/worker'

export default defineAgent(
  'by-hand',
  async turn => {
    const words = turn.text.split(/\s+/)
    // Two messages are open at the same time: the progress, and the text.
    await turn.message(data({ done: 0, of: words.length }), async progress => {
      await turn.message(text('', 'markdown'), async message => {
        for (const [i, word] of words.entries()) {
          await sleep(20, undefined, { signal: turn.signal })
          await message.append(`${word.toUpperCase()} `)
          await progress.setData({ done: i + 1, of: words.length })
        }
        // Replaces the whole message and closes it.
        await message.replace(text(`**${words.join(' ').toUpperCase()}**`, 'markdown'), { words: words.length })
      })
    })
  },
  { description: 'Repeats its input loudly, with its progress' },
)
