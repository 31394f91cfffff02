/**
 * A call of MCP as an event stream, for a client that wants progress: a notification for each step of the agent, then the result.
 *
 * Its frames have no `id`, because MCP would resume a stream by a GET, which this server does not have. A stream that breaks has no result; the turn goes on.
 */
import { type Change, Narrator } from '@rivulet/narrator'
import {
  type Cursor,
  type Event,
  type FoldedTurn,
  hasEnded,
  hasOpenQuestion,
  isObject,
  type Message,
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
  const narrator = new Narrator({ turnNumber, followsJoins: true })
  let progress = 0
  let isOver = false
  return { take, hasEnded: () => isOver }

  function take(cursor: Cursor, event: Event | WireEvent | TokenEvent): object[] {
    if (isOver) return []
    if (event.type === 'deleted') return end({ number: turnNumber, status: 'canceled', attempt: 0 })
    const changes = narrator.take(cursor, event)
    // A snapshot, and the turn that this one joins, bring steps from before; the client asks for those from now on.
    const notices = event.type === 'snapshot' || event.type === 'turn.joined' ? [] : changes.flatMap(notify)
    const { turn } = narrator
    const mayEnd = changes.some(change => change.type === 'started' || change.type === 'ended' || (change.type === 'asked' && !change.more))
    return [...notices, ...(mayEnd && (hasEnded(turn.status) || hasOpenQuestion(turn.waits)) ? end(turn) : [])]
  }

  function notify(change: Change): object[] {
    const message = progressOf(change)
    if (message === null) return []
    progress += 1
    return [{ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress, message } }]
  }

  function end(turn: FoldedTurn): object[] {
    isOver = true
    return [respond(turn, narrator.messages)]
  }
}

/** Null for a change that is no step of the agent. */
function progressOf(change: Change): string | null {
  if (change.type === 'custom') return change.name === 'progress' ? reportOf(change.data) : null
  if (!('message' in change)) return null
  const { content, status } = change.message
  if (content.type === 'tool_request') return status === 'streaming' ? null : `Calls ${content.name}`
  const isReport = change.type === 'grew' && content.type === 'tool_response' && typeof content.content === 'string'
  return isReport ? shortened(`${content.name}: ${content.content}`) : null
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
