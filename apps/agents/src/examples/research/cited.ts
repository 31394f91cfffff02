/**
 * Replies from notes: streams the model's text, with marks such as `[2]`, and then replaces the message with the text and its sources. Viewers
 * read along while the text is written; the stored message is the one with sources.
 */
import { type ModelRequest, type ScriptStep, say } from '@rivulet/agent'
import { type AgentDefinition, defineAgent, text } from '@rivulet/worker'
import { chooseModel, type ProviderSettings } from '../model-choice.ts'
import { addSources } from './citations.ts'
import { latestQuestion } from './latest-question.ts'
import { findNotes, type Note, sentencesOf } from './library.ts'

export function createCited(provider: ProviderSettings): AgentDefinition {
  const model = chooseModel(provider, citeOffline)
  return defineAgent(
    'cited',
    async turn => {
      const messages = await turn.history()
      const notes = findNotes(latestQuestion(messages).question)
      await turn.message(text('', 'markdown'), async message => {
        let answer = ''
        for await (const update of model.stream({ system: instructionsFor(notes), messages }, { turn })) {
          if (update.type !== 'delta' || update.delta.type !== 'text') continue
          answer += update.delta.text
          await message.append(update.delta)
        }
        const { markdown, sources } = addSources(answer, notes)
        await message.replace(text(markdown, 'markdown'), { sources })
      })
    },
    { description: 'Replies to questions about Rivulet and cites its sources' },
  )
}

/** What is said without a model: the first sentence of each note that fits. */
export function citeOffline({ messages }: Pick<ModelRequest, 'messages'>): ScriptStep {
  const notes = findNotes(latestQuestion(messages).question)
  if (notes.length === 0)
    return [say('My notes say nothing about that. They are about Rivulet: ask me about cancels, retries or slow viewers.')]
  return [say(notes.map(({ text }, i) => `${sentencesOf(text)[0]} [${i + 1}]`).join(' '))]
}

function instructionsFor(notes: readonly Note[]): string {
  const listed = notes.map(({ title, text }, i) => `[${i + 1}] ${title}\n${text}`)
  const rules = 'Answer briefly, from these notes only. Behind each sentence, name the note it rests on by its mark, such as [1].'
  return [rules, ...(listed.length > 0 ? listed : ['There are no notes on this: say so.'])].join('\n\n')
}
