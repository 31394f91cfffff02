/** The events that a message is the fold of, without its deltas: for a log that is written again, and for readers that know events only. */
import type { Message } from '../entities/entities.ts'
import type { EventOf } from '../events/event.ts'

/** @param at the time of both events; default: the times of the message. */
export function messageEvents(message: Message, at?: number): EventOf<'message.started' | 'message.finished'>[] {
  const { task, turn, attempt, index, author, content, metadata, status, stopReason, usage, response, error, createdAt, finishedAt } =
    message
  const stamp = { task, turn, attempt, index }
  const started = { type: 'message.started', ...stamp, at: at ?? Date.parse(createdAt), author, content, metadata } as const
  if (status === 'streaming') return [started]
  const how = { status, ...(stopReason && { stopReason }), ...(usage && { usage }), ...(response && { response }), ...(error && { error }) }
  return [started, { type: 'message.finished', ...stamp, at: at ?? Date.parse(finishedAt ?? createdAt), ...how }]
}
