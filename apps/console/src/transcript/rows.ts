/**
 * A transcript as the rows that a reader sees: each turn's beginning and end, its messages, and a tool's call and response as one.
 */
import { type FoldedTurn, hasEnded, type Message, type Wait } from '@rivulet/client'
import type { Superseded } from './earlier/superseded.ts'
import { beginsOf } from './responses.ts'

/** `isOver`: the turn has ended, so no response can follow. */
type ToolRow = { kind: 'tool'; key: string; request: Message | null; response: Message | null; isOver: boolean }

export type Row =
  | { kind: 'turn'; key: string; turn: FoldedTurn }
  /** `begins`: when the response that ends with it began; null where that is not known. */
  | { kind: 'message'; key: string; message: Message; isOver: boolean; begins: number | null }
  | ToolRow
  | { kind: 'wait'; key: string; wait: Wait }
  /** A turn and those that it took the place of, by their numbers. */
  | { kind: 'versions'; key: string; numbers: readonly number[]; shown: number }
  | { kind: 'outcome'; key: string; turn: FoldedTurn }
  | { kind: 'superseded'; key: string; group: Superseded }
  /** The attempts before the latest; `shown` are those that have a row already. */
  | { kind: 'attempts'; key: string; turn: FoldedTurn; shown: readonly number[] }
  | { kind: 'pending'; key: string; turn: FoldedTurn }
  /** Ended before a worker began it: its input is in no message. */
  | { kind: 'unstarted'; key: string; turn: FoldedTurn }

export function turnNumberOf(row: Row): number | undefined {
  switch (row.kind) {
    case 'message':
      return row.message.turn
    case 'tool':
      return (row.request ?? row.response)?.turn
    case 'wait':
      return row.wait.turn
    case 'superseded':
      return row.group.turnNumber
    case 'versions':
      return row.shown
    default:
      return row.turn.number
  }
}

/** What lies around the messages: whether they begin with the task's first, and reach to its end; and what earlier attempts said. */
type RowOptions = { isFromStart: boolean; isToEnd: boolean; superseded?: readonly Superseded[] }

/** @param messages neighbours, in order */
export function rowsOf(
  messages: readonly Message[],
  turns: readonly FoldedTurn[],
  { isFromStart, isToEnd, superseded = [] }: RowOptions,
): Row[] {
  const byNumber = new Map(turns.map(turn => [turn.number, turn]))
  const begins = beginsOf(messages, isFromStart)
  const responses = new Map<string, Message>()
  const requests = new Set<string>()
  for (const message of messages) {
    if (message.content.type === 'tool_response') responses.set(callOf(message, message.content.callId), message)
    if (message.content.type === 'tool_request') requests.add(callOf(message, message.content.callId))
  }

  const untold = new Map(turns.map(({ number, waits = [] }) => [number, waits]))
  const rows: Row[] = []
  let current: number | null = null
  let toldAttempts = 0
  for (const message of messages) {
    if (message.turn !== current) {
      if (current !== null) end(current)
      if (current !== null || isFromStart) passOver(current ?? 0, message.turn)
      begin(message)
    }
    const row = rowOf(message)
    // Superseded attempts are shown after the input and before the messages of the current attempt.
    if (message.author !== 'user') tellAttempts(message.turn)
    const asked = takeWaits(message.turn, wait => !isOfCall(message, wait) && isBefore(wait, message))
    // What was asked before the window begins has its place before it.
    if (isFromStart || message !== messages[0]) rows.push(...asked)
    if (!row) continue
    rows.push(row)
    if (row.kind === 'tool') rows.push(...takeWaits(message.turn, ({ callId }) => callId !== undefined && callId === callIdIn(message)))
  }
  if (!isToEnd) return rows
  if (current !== null) end(current)
  passOver(current ?? 0, Number.POSITIVE_INFINITY)
  return rows

  /** Turns between two that have messages, or behind the last. */
  function passOver(after: number, before: number): void {
    for (const turn of turns) {
      if (turn.number <= after || turn.number >= before) continue
      tellAttempts(turn.number)
      if (!hasEnded(turn.status))
        rows.push(...(turn.waits ? takeWaits(turn.number) : [{ kind: 'pending', key: `pending ${turn.number}`, turn } as const]))
      else if (!turn.startedAt && (turn.input || turn.omitted?.includes('input')))
        rows.push({ kind: 'unstarted', key: `unstarted ${turn.number}`, turn })
      else end(turn.number)
    }
  }

  function begin({ turn: number }: Message): void {
    current = number
    const turn = byNumber.get(number)
    if (turn) rows.push({ kind: 'turn', key: `turn ${number}`, turn })
  }

  function end(number: number): void {
    tellAttempts(number)
    rows.push(...takeWaits(number))
    const turn = byNumber.get(number)
    if (turn && hasEnded(turn.status)) rows.push({ kind: 'outcome', key: `outcome ${number}`, turn })
  }

  /** The waits of a turn that have no row yet. */
  function takeWaits(number: number, isHere: (wait: Wait) => boolean = () => true): Row[] {
    const left = untold.get(number) ?? []
    untold.set(
      number,
      left.filter(wait => !isHere(wait)),
    )
    return left.filter(isHere).map(wait => ({ kind: 'wait', key: `wait ${wait.id}`, wait }))
  }

  /** A wait for the approval of a call stands below that call. */
  function isOfCall({ turn: number }: Message, { callId }: Wait): boolean {
    return callId !== undefined && requests.has(`${number} ${callId}`)
  }

  function tellAttempts(number: number): void {
    if (number <= toldAttempts) return
    toldAttempts = number
    const groups = superseded.filter(({ turnNumber }) => turnNumber === number)
    for (const group of groups) rows.push({ kind: 'superseded', key: `superseded ${number} ${group.attempt}`, group })
    const turn = byNumber.get(number)
    if (turn && turn.attempt > 1)
      rows.push({ kind: 'attempts', key: `attempts ${number}`, turn, shown: groups.map(({ attempt }) => attempt) })
  }

  function rowOf(message: Message): Row | null {
    const { content, index } = message
    const key = `${index}`
    const isOver = hasEnded(byNumber.get(message.turn)?.status ?? 'completed')
    if (content.type === 'tool_request') {
      return { kind: 'tool', key, request: message, response: responses.get(callOf(message, content.callId)) ?? null, isOver }
    }
    if (content.type === 'tool_response') {
      return requests.has(callOf(message, content.callId)) ? null : { kind: 'tool', key, request: null, response: message, isOver }
    }
    return { kind: 'message', key, message, isOver, begins: begins.get(index) ?? null }
  }
}

/** A model may use an id again in its next turn. */
function callOf({ turn: turnNumber }: Message, callId: string): string {
  return `${turnNumber} ${callId}`
}

function callIdIn({ content }: Message): string | null {
  return content.type === 'tool_request' || content.type === 'tool_response' ? content.callId : null
}

/** A wait has no index, so its place is that of its time. An open one is last, because its turn waits for it. */
function isBefore({ status, createdAt }: Wait, message: Message): boolean {
  return status !== 'open' && message.author !== 'user' && Date.parse(createdAt) < Date.parse(message.createdAt)
}
