/** Random turns within a worker's rules: interleaved messages, parallel calls, results, whole messages, any end. */
import {
  type Content,
  createTurnComposer,
  data,
  delta,
  done,
  type Event,
  full,
  type Message,
  type OutcomeStatus,
  reasoning,
  type StopReason,
  start,
  text,
  toolRequest,
  toolResponse,
  type Update,
} from '@rivulet/protocol'
import fc from 'fast-check'
import { task, turnOf } from './task-log.ts'

export type RandomTurn = { events: Event[]; messages: Message[]; status: OutcomeStatus }

type Choice = { kind: number; place: number; words: string }

const pieces = ['{"a":', '1', '}', ' ']
const ends = {
  completed: { status: 'completed', stopReason: 'stop' },
  canceled: { status: 'canceled', stopReason: 'aborted' },
  failed: { status: 'failed', stopReason: 'error', error: { code: 'agent_error', message: 'no' } },
} as const

const choice = fc.record({ kind: fc.nat(9), place: fc.nat(5), words: fc.string({ minLength: 1, maxLength: 6, unit: 'grapheme' }) })

export const randomTurn = turns({ overrides: false })
/** With texts that are replaced by others that do not continue them. */
export const overriddenTurn = turns({ overrides: true })

function turns({ overrides }: { overrides: boolean }): fc.Arbitrary<RandomTurn> {
  return fc
    .tuple(fc.array(choice, { maxLength: 40 }), fc.constantFrom<OutcomeStatus>('completed', 'canceled', 'failed'))
    .map(([choices, status]) => {
      const updates = updatesOf(choices, overrides)
      const events = turnOf({ updates, end: ends[status] })
      return { events, status, messages: messagesOf(updates, status) }
    })
}

/** The stored messages of the turn. */
function messagesOf(updates: Update[], status: OutcomeStatus): Message[] {
  const composer = createTurnComposer({ task, turn: 1, attempt: 1, firstIndex: 0 })
  for (const update of updates) composer.compose(update)
  composer.closeAll(status === 'completed' ? 'complete' : status === 'canceled' ? 'aborted' : 'failed')
  return composer.messages()
}

function updatesOf(choices: readonly Choice[], overrides: boolean): Update[] {
  const open = new Map<number, { content: Content; fragments: number }>()
  const pendingCalls: string[] = []
  let next = 0

  return choices.flatMap(({ kind, place, words }): Update[] => {
    const index = [...open.keys()][place % Math.max(open.size, 1)]
    if (kind < 4 || index === undefined) return [opening(kind, words)]
    const message = open.get(index)
    if (!message) return []
    if (kind < 7) return extending(index, message, words)
    open.delete(index)
    if (overrides && kind === 8 && message.content.type === 'text') return [full(index, text(words))]
    return kind === 9 && message.fragments === 0 ? [full(index, whole(message.content, words))] : [done(index, stopping(place))]
  })

  function opening(kind: number, words: string): Update {
    const index = next
    next += 1
    const content = contentOf(kind, index, words)
    if (content.type === 'tool_request') pendingCalls.push(content.callId)
    if (kind >= 8) return full(index, content)
    open.set(index, { content, fragments: 0 })
    return start(index, content)
  }

  function contentOf(kind: number, index: number, words: string): Content {
    if (kind % 4 === 0) return text(words)
    if (kind % 4 === 1) return toolRequest(`call-${index}`, 'f')
    if (kind % 4 === 3) return words.length % 2 ? reasoning() : data()
    return toolResponse(pendingCalls.shift() ?? `other-${index}`, 'f')
  }

  function extending(index: number, message: { content: Content; fragments: number }, words: string): Update[] {
    const { content } = message
    message.fragments += 1
    if (content.type === 'text') return [delta(index, words)]
    if (content.type === 'reasoning') return [delta(index, { type: 'reasoning_summary', index: message.fragments % 2, text: words })]
    if (content.type === 'tool_response') return [delta(index, { type: 'tool_response', text: words })]
    if (content.type === 'tool_request') return [delta(index, { type: 'tool_request', text: pieces[(message.fragments - 1) % 4] ?? '' })]
    return [delta(index, { type: 'data', value: { words } })]
  }
}

function whole(content: Content, words: string): Content {
  if (content.type === 'text') return text(content.text + words)
  if (content.type === 'tool_request') return { ...content, arguments: { words } }
  return content.type === 'tool_response' ? { ...content, content: words } : content
}

function stopping(place: number): { stopReason?: StopReason } {
  return place === 0 ? { stopReason: 'tool_use' } : place === 1 ? { stopReason: 'stop' } : {}
}
