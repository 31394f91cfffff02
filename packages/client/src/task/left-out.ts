/** Reads the messages that a snapshot leaves out because they are old or long, page by page. */
import { type Message, messagesOf, restoreState, type TaskState } from '@rivulet/protocol'
import type { Calls } from '../generated/calls.ts'
import type { QueryOf } from '../http/call-of.ts'

export type MessageQuery = QueryOf<Calls['tasks']['messages']>

export type ReadMessages = Calls['tasks']['messages']

/** All of them, however little a page holds. */
export async function readAll(messages: ReadMessages, query: MessageQuery): Promise<Message[]> {
  const found: Message[] = []
  for (let next = query; ; ) {
    const { data, nextCursor } = await messages(next)
    found.push(...data)
    if (nextCursor === null) return found
    next = { ...query, after: nextCursor }
  }
}

/** The state with every message from the beginning of a turn on, however much of that a snapshot has left out. */
export async function withTurn(state: TaskState, turnNumber: number, messages: ReadMessages): Promise<TaskState> {
  const known = messagesOf(state)
  const isWhole = state.messagesFrom === 0 || (known[0] !== undefined && known[0].turn < turnNumber)
  if (isWhole) return state
  const found: Message[] = []
  for (const { number } of state.turns) {
    const isLeftOut = number >= turnNumber && number <= (known[0]?.turn ?? number)
    if (isLeftOut) found.push(...(await readAll(messages, { turn: number })).filter(({ index }) => index < state.messagesFrom))
  }
  const messagesFrom = found[0]?.index ?? state.messagesFrom
  return restoreState(state.cursor, { status: state.status, turns: [...state.turns], messages: [...found, ...known], messagesFrom })
}
