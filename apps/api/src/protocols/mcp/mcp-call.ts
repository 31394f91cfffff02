/**
 * A call of MCP as an event stream, for a client that wants progress: a notification for each step of the agent, then the result.
 *
 * Its frames have no `id`, because MCP would resume a stream by a GET, which this server does not have. A stream that breaks has no result; the turn goes on.
 */
import {
  applyOrSkip,
  type Cursor,
  type Event,
  emptyState,
  type FoldedTurn,
  hasEnded,
  hasOpenQuestion,
  isObject,
  type Message,
  messageAt,
  messagesOf,
  restoreState,
  type TokenEvent,
  type WireEvent,
} from '@rivulet/protocol'
import type { Dialect, DialectStream } from '../../stream/dialects/dialect.ts'
import { frameEnd } from '../../stream/sse-frame.ts'

export type McpCall = {
  turnNumber: number
  progressToken: string | number
  /** The response to the call, for a turn that has ended or asks for something. */
  respond: (turn: FoldedTurn, messages: readonly Message[]) => object
  /** The same from the rows; null while the turn goes on. */
  read: () => Promise<object | null>
}

export function mcpCall(call: McpCall): Dialect {
  return {
    name: 'mcp-call',
    scope: 'turn',
    headers: {},
    open: async () => openCallStream(call),
    encode: chunk => `data: ${JSON.stringify(chunk)}${frameEnd}`,
    ending: '',
    async stored() {
      const response = await call.read()
      return response && [response]
    },
  }
}

function openCallStream({ turnNumber, progressToken, respond }: McpCall): DialectStream {
  let state = emptyState
  let progress = 0
  let isOver = false
  return { take, hasEnded: () => isOver }

  function take(cursor: Cursor, event: Event | WireEvent | TokenEvent): object[] {
    if (isOver) return []
    switch (event.type) {
      case 'snapshot': {
        const { task, turns, messages, messagesFrom } = event
        state = restoreState(cursor, { status: task.status, turns, messages, messagesFrom })
        return endIfOver()
      }
      case 'deleted':
        return end({ number: turnNumber, status: 'canceled', attempt: 0 })
      case 'caught_up':
      case 'token':
      case 'end':
        return []
      default:
        state = applyOrSkip(state, event, cursor)
        return [...notify(event), ...(event.type === 'turn.waiting' && event.more ? [] : endIfOver())]
    }
  }

  function notify(event: Event): object[] {
    const message = event.turn === target() ? messageOf(event) : null
    if (message === null) return []
    progress += 1
    return [{ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress, message } }]
  }

  function messageOf(event: Event): string | null {
    if (event.type === 'custom') return event.name === 'progress' ? reportOf(event.data) : null
    if (event.type !== 'message.delta' && event.type !== 'message.replaced' && event.type !== 'message.finished') return null
    const { content, status } = messageAt(state, event.index)?.message ?? {}
    if (content?.type === 'tool_request') return status === 'streaming' ? null : `Calls ${content.name}`
    const isReport = content?.type === 'tool_response' && status === 'streaming' && typeof content.content === 'string'
    return isReport ? shortened(`${content.name}: ${content.content}`) : null
  }

  function endIfOver(): object[] {
    const turn = state.turns.find(({ number }) => number === target())
    return turn && (hasEnded(turn.status) || hasOpenQuestion(turn.waits)) ? end(turn) : []
  }

  function end(turn: FoldedTurn): object[] {
    isOver = true
    return [
      respond(
        turn,
        messagesOf(state).filter(message => message.turn === turn.number),
      ),
    ]
  }

  /** The turn of the call, or the one that it has joined. */
  function target(): number {
    return state.turns.find(({ number }) => number === turnNumber)?.joinedTo ?? turnNumber
  }
}

/** An agent reports by `turn.custom('progress', { message })`, or with a text in place of the object. */
function reportOf(data: unknown): string | null {
  const message = isObject(data) ? data.message : data
  return typeof message === 'string' ? shortened(message) : null
}

function shortened(text: string): string {
  return text.length > maxMessage ? `${text.slice(0, maxMessage)} …` : text
}

const maxMessage = 500
