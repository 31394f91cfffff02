/**
 * Whether a viewer received a story as it is, at every moment and not only at the end: what it holds is always a beginning of what one attempt
 * says. So a cursor that means something else than before shows, and a word that is left out, even where all is well again later.
 */
import { emptyState, type Message, messagesOf, RivuletError } from '@rivulet/protocol'
import type { Journal } from '../../support/judge/journal-lines.ts'
import { foldFrame } from '../../support/viewers/viewer.ts'
import type { Frame } from '../../support/viewers/viewer-connection.ts'
import { type Story, textsOf } from './story.ts'

export function faultsOfTelling({ task, connections }: Journal, storyOf: (turnNumber: number) => Story | undefined): string[] {
  let state = emptyState
  const faults: string[] = []
  for (const frame of connections.flatMap(({ frames }) => frames)) {
    const { discarded } = state
    try {
      state = foldFrame(state, frame)
    } catch (error) {
      // The judge says so.
      if (!(error instanceof RivuletError)) throw error
    }
    const wrong = state.discarded > discarded ? 'has no place' : whatIsWrong(messagesOf(state), frame, storyOf)
    if (wrong) faults.push(`viewer of ${task}: ${frame.data.type} ${frame.id}: ${wrong}`)
  }
  // What is wrong once stays wrong.
  return faults.slice(0, 3)
}

function whatIsWrong(messages: Message[], { data }: Frame, storyOf: (turnNumber: number) => Story | undefined): string | null {
  const touched = data.type === 'snapshot' ? messages : 'index' in data ? messages.filter(({ index }) => index === data.index) : []
  for (const { author, turn: turnNumber, attempt, index, content } of touched) {
    const story = storyOf(turnNumber)
    if (author !== 'agent' || !story) continue
    const texts = textsOf(story, attempt)
    const own = messages.filter(message => message.turn === turnNumber && message.author === 'agent')
    const place = own.findIndex(message => message.index === index)
    const text = content.type === 'text' ? content.text : ''
    if (!texts[place]?.startsWith(text))
      return `message ${index} is ${JSON.stringify(text)}, which is no beginning of ${JSON.stringify(texts[place])}`
    const before = own[place - 1]?.content
    if (before?.type === 'text' && before.text !== texts[place - 1]) return `message ${index} begins before the one before it is whole`
  }
  return null
}
