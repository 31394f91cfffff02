/** What turns wait for: the inbox of a tenant, and the calls on the waits of one task. */
import type { AnswerBody } from '@rivulet/contract/waits'
import type { Json, Turn, Wait, WaitKind, WaitStatus } from '@rivulet/protocol'
import { type CallOptions, type Http, metadataQuery } from './http/http.ts'
import { type Page, readField, readJson, readPage } from './http/responses.ts'

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
      return http.call({ path: '/v1/waits', query, ...own, read: readPage<Wait>('wait') })
    },
  }
}

/** @param path of the task */
export function createTaskWaitCalls(http: Http, path: string): TaskWaitCalls {
  return {
    answer: (wait, body, own) => {
      const id = encodeURIComponent(typeof wait === 'string' ? wait : wait.id)
      return http.call({ method: 'POST', path: `${path}/waits/${id}/answer`, body, ...own, read: readField<Wait>('wait') })
    },
    signal: (name, data = null, own = {}) => {
      const read = readJson(({ status }) => (status === 'delivered' ? status : 'kept'))
      return http.call({ method: 'POST', path: `${path}/signals`, body: { name, data }, ...own, read })
    },
  }
}

/** The open waits of turns, in the order in which they were asked. */
export function openWaits(turns: readonly Pick<Turn, 'waits'>[]): Wait[] {
  return turns.flatMap(({ waits = [] }) => waits.filter(({ status }) => status === 'open'))
}
