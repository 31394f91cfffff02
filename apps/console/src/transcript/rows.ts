/**
 * A transcript as the rows that a reader sees: each turn's beginning and end, its messages, and a tool's call and response as one.
 */
import { type FoldedTurn, hasEnded, type Message } from '@rivulet/client'
import type { Superseded } from './earlier/superseded.ts'

export type ToolRow = { kind: 'tool'; key: string; request: Message | null; response: Message | null }

export type Row =
  | { kind: 'turn'; key: string; turn: FoldedTurn }
  | { kind: 'message'; key: string; message: Message }
  | ToolRow
  | { kind: 'outcome'; key: string; turn: FoldedTurn }
  | { kind: 'superseded'; key: string; group: Superseded }
  | { kind: 'pending'; key: string; turn: FoldedTurn }

/** @param messages neighbours, in order. @param isToEnd whether they reach to the end of the task. */
export function rowsOf(
  messages: readonly Message[],
  turns: readonly FoldedTurn[],
  isToEnd: boolean,
  superseded: readonly Superseded[] = [],
): Row[] {
  const byNumber = new Map(turns.map(turn => [turn.number, turn]))
  const responses = new Map<string, Message>()
  const requests = new Set<string>()
  for (const message of messages) {
    if (message.content.type === 'tool_response') responses.set(callOf(message, message.content.callId), message)
    if (message.content.type === 'tool_request') requests.add(callOf(message, message.content.callId))
  }

  const rows: Row[] = []
  let current: number | null = null
  let toldAttempts = 0
  for (const message of messages) {
    if (message.turn !== current) {
      if (current !== null) end(current)
      begin(message)
    }
    const row = rowOf(message)
    // Superseded attempts are shown after the input and before the messages of the current attempt.
    if (message.author !== 'user') tellAttempts(message.turn)
    if (row) rows.push(row)
  }
  if (!isToEnd) return rows
  if (current !== null) end(current)
  for (const turn of turns) {
    if (turn.number <= (current ?? 0)) continue
    tellAttempts(turn.number)
    if (!hasEnded(turn.status)) rows.push({ kind: 'pending', key: `pending ${turn.number}`, turn })
    else end(turn.number)
  }
  return rows

  function begin({ turn: number }: Message): void {
    current = number
    const turn = byNumber.get(number)
    if (turn) rows.push({ kind: 'turn', key: `turn ${number}`, turn })
  }

  function end(number: number): void {
    tellAttempts(number)
    const turn = byNumber.get(number)
    if (turn && hasEnded(turn.status)) rows.push({ kind: 'outcome', key: `outcome ${number}`, turn })
  }

  function tellAttempts(number: number): void {
    if (number <= toldAttempts) return
    toldAttempts = number
    for (const group of superseded) {
      if (group.turnNumber === number) rows.push({ kind: 'superseded', key: `superseded ${number} ${group.attempt}`, group })
    }
  }

  function rowOf(message: Message): Row | null {
    const { content, index } = message
    const key = `${index}`
    if (content.type === 'tool_request') {
      return { kind: 'tool', key, request: message, response: responses.get(callOf(message, content.callId)) ?? null }
    }
    if (content.type === 'tool_response') {
      return requests.has(callOf(message, content.callId)) ? null : { kind: 'tool', key, request: null, response: message }
    }
    return { kind: 'message', key, message }
  }
}

/** A model may use an id again in its next turn. */
function callOf({ turn: turnNumber }: Message, callId: string): string {
  return `${turnNumber} ${callId}`
}
