/** Auto-send: pass a stream, and get the finished messages. The least code for the output of a model. */
import { say, scriptedModel, think } from '@rivulet/agent'
import { defineAgent } from '@rivulet/worker'

// Plays a script, offline. In its place: openaiModel({ apiKey, model: 'gpt-4.1-mini' }), or anthropicModel({ … }).
const model = scriptedModel(() => [think('A greeting is asked for.'), say('Good morning, and welcome.')], { chunks: 'words', delayMs: 20 })

export default defineAgent(
  'auto-send',
  async turn => {
    const stream = model.stream({ messages: await turn.history() }, { turn })
    const { text, usage, stopReason } = await turn.autoSend(stream)
    turn.log.info({ characters: text.length, usage, stopReason }, 'sent the whole answer')
  },
  { description: 'Greets, with a reason' },
)
