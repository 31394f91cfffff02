/** Random logs of a turn, for the laws of dialects. */
import {
  type Content,
  createTurnComposer,
  data,
  delta,
  done,
  type Event,
  full,
  media,
  type OutcomeStatus,
  reasoning,
  start,
  text,
  toolRequest,
  toolResponse,
  type Update,
} from '@rivulet/protocol'
import fc from 'fast-check'
import { type Entry, logOf, task } from './log-entries.ts'

const choice = fc.record({ kind: fc.nat(15), place: fc.nat(5), words: fc.constantFrom('a', 'b', 'ab', 'abc', ' ') })
const ends = { completed: 'complete', canceled: 'aborted', failed: 'failed' } as const

/** One or two attempts at a turn, in which anything may happen that a worker's rules allow, and how it ends. */
export const randomLog: fc.Arbitrary<Entry[]> = fc
  .tuple(
    fc.array(fc.array(choice, { maxLength: 14 }), { minLength: 1, maxLength: 2 }),
    fc.constantFrom<OutcomeStatus>('completed', 'canceled', 'failed'),
  )
  .map(([attempts, status]) => {
    const ids = { task, turn: 1, at: 1 }
    const events = attempts.flatMap((choices, place): Event[] => {
      const composer = createTurnComposer({ ...ids, attempt: place + 1, firstIndex: 0 }, { now: () => 1 })
      const said = choices.flatMap(({ kind, place: at, words }) => composer.compose(updateOf(kind, at, words, composer.messages())))
      const closed = composer.closeAll(place === attempts.length - 1 ? ends[status] : 'failed')
      return [{ type: 'turn.started', ...ids, attempt: place + 1, firstIndex: 0 }, ...said, ...closed]
    })
    const end: Event = { type: 'turn.finished', ...ids, attempt: attempts.length, status, stopReason: 'stop' }
    const queued: Event = { type: 'turn.queued', ...ids, attempt: 0 }
    return logOf([queued, ...events, end])
  })

function updateOf(kind: number, place: number, words: string, messages: { index: number; status: string; content: Content }[]): Update {
  const open = messages.filter(({ status }) => status === 'streaming')
  const { index, content } = open[place % Math.max(open.length, 1)] ?? {}
  if (kind < 6 || index === undefined || !content) return start(messages.length, contentOf(kind, words), citing(words))
  if (kind === 6) return full(messages.length, contentOf(place, words))
  if (kind === 7) return full(index, content.type === 'text' ? text(content.text + words) : contentOf(place, words))
  if (kind === 8) return delta(index, { type: 'metadata', metadata: citing(words) })
  if (kind === 9) return done(index, place === 0 ? { status: 'aborted' } : {})
  return extension(index, content, kind, words)
}

function contentOf(kind: number, words: string): Content {
  const callId = words === ' ' ? '' : (words[0] ?? '')
  const kinds = [text(words), reasoning([words], []), toolRequest(callId, words), toolResponse(callId, words), data(), media('image/png')]
  return kinds[kind % kinds.length] ?? text(words)
}

function citing(words: string) {
  return { citations: Array.from(words, word => ({ url: `https://${word}.example` })) }
}

function extension(index: number, content: Content, kind: number, words: string): Update {
  switch (content.type) {
    case 'text':
      return delta(index, words)
    case 'reasoning':
      return delta(index, { type: kind % 2 ? 'reasoning_summary' : 'reasoning_content', index: kind % 3, text: words })
    case 'tool_request':
      return delta(index, { type: 'tool_request', text: content.raw ? '}' : '{' })
    case 'tool_response':
      return delta(index, typeof content.content === 'string' ? { type: 'tool_response', text: words } : { type: 'data', value: words })
    case 'data':
      return delta(index, kind % 2 && content.raw === undefined ? { type: 'data', value: words } : { type: 'data_json', text: '1' })
    case 'media':
      return delta(index, { type: 'media', bytes: 'AAEC' })
    default:
      return content satisfies never
  }
}
