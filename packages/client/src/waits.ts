/** What turns wait for: the inbox of a tenant, and the calls on the waits of one task. */
import type { AnswerBody } from '@rivulet/contract/waits'
import type { Json, Turn, Wait, WaitKind, WaitStatus } from '@rivulet/protocol'
import { callsOf } from './http/calls.ts'
import { type CallOptions, type Http, metadataQuery } from './http/http.ts'
import { type Page, readFields } from './http/responses.ts'

/** `metadata` finds waits that have all of these. At most 100 a page, oldest first; open ones by default. */
export type WaitQuery = {
  status?: WaitStatus
  kind?: WaitKind | readonly WaitKind[]
  agent?: string
  assignee?: string
  task?: string
  metadata?: Record<string, string>
  limit?: number
  cursor?: string
}

export type WaitCalls = { list(query?: WaitQuery, options?: CallOptions): Promise<Page<Wait>> }

type Keyed = CallOptions & { idempotencyKey?: string }

export type TaskWaitCalls = {
  /** Closes a wait. Rejects with `already_answered` if another caller was first, and with `wait_closed` if it is expired or canceled. */
  answer(wait: string | Pick<Wait, 'id'>, answer: AnswerBody, options?: Keyed): Promise<Wait>
  /** Closes the open wait for this event, or is kept for the next one. */
  signal(name: string, data?: Json, options?: Keyed): Promise<'delivered' | 'kept'>
}

export function createWaitCalls(http: Http): WaitCalls {
  return {
    list: ({ metadata, kind, ...filters } = {}, own) => {
      const query = { ...filters, kind: kind && [kind].flat().join(','), ...metadataQuery(metadata) }
      return http.call({ path: '/v1/waits', query, ...own, read: readFields<Page<Wait>>('data:wait[] nextCursor:json') })
    },
  }
}

export function createTaskWaitCalls(http: Http, task: string): TaskWaitCalls {
  const { answer, send } = callsOf(http, 'waits', task)
  return {
    answer: (wait, body, own) => answer(typeof wait === 'string' ? wait : wait.id, body, own),
    signal: (name, data = null, own) => send({ name, data }, own),
  }
}

/** The open waits of turns, in the order in which they were asked. */
export function openWaits(turns: readonly Pick<Turn, 'waits'>[]): Wait[] {
  return turns.flatMap(({ waits = [] }) => waits.filter(({ status }) => status === 'open'))
}
