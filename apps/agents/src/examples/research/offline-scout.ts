/**
 * The scout without a configured model: it thinks, searches for each part of the question in parallel, reads the results in parallel, and
 * summarises them. A function of the conversation, like a model.
 */
import { call, type HistoryMessage, type ModelRequest, type ScriptStep, say, think } from '@rivulet/agent'
import { latestQuestion } from './latest-question.ts'
import { type Note, sentencesOf } from './library.ts'
import { pageMark } from './pages.ts'

const maxSearches = 3
const maxReadings = 4

/** Said of a page without a note that fits. */
export const nothing = 'I found nothing about that in my notes.'

export function scoutOffline({ messages }: Pick<ModelRequest, 'messages'>): ScriptStep {
  const { question, since } = latestQuestion(messages)
  const searches = resultsOf<{ found: { id: string }[] }>('search_notes', since)
  const readings = resultsOf<Note>('read_note', since)
  if (readings.length > 0) return [think('That is enough to answer.'), say(reportOn(readings))]
  if (searches.length > 0) return readWhatWasFound(searches.flatMap(({ found }) => found.map(({ id }) => id)))
  const [asked = '', page] = question.split(pageMark)
  const queries = partsOf(asked)
  if (queries.length === 0) return [say('Ask me something about Rivulet: how it cancels, for example, and what becomes of slow viewers.')]
  const plan = queries.length > 1 ? `This asks for ${queries.length} things. I search for each of them at once.` : 'I search for it first.'
  return [think(plan), ...queries.map(query => call('search_notes', { query, ...(page !== undefined && { page }) }))]
}

function readWhatWasFound(ids: string[]): ScriptStep {
  const unique = Array.from(new Set(ids)).slice(0, maxReadings)
  if (unique.length === 0) return [say(nothing)]
  return [think(`${unique.length} of the notes may help. I read them side by side.`), ...unique.map(id => call('read_note', { id }))]
}

function reportOn(read: readonly Note[]): string {
  return read.map(({ title, text }) => `${title}: ${sentencesOf(text).slice(0, 2).join(' ')}`).join('\n\n')
}

/** `How does it retry, and what about slow viewers?` asks for two things. */
function partsOf(question: string): string[] {
  const parts = question.split(/[,;?!.]|\band\b/i).map(part => part.trim().slice(0, 200).toWellFormed())
  return parts.filter(part => part !== '').slice(0, maxSearches)
}

function resultsOf<T>(name: string, messages: readonly HistoryMessage[]): T[] {
  return messages.flatMap(({ content }) =>
    content.type === 'tool_response' && content.name === name && !content.isError ? [content.content as T] : [],
  )
}
