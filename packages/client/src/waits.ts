/** What turns wait for: the inbox of a tenant, and the calls on the waits of one task. */
import type { AnswerBody, Json, Turn, Wait, WaitKind, WaitStatus } from '@rivulet/protocol'
import { type CallOptions, type Http, readEntity, readJson } from './http/http.ts'
import { type Page, readPage } from './http/page.ts'

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
  return { list }

  function list({ metadata = {}, kind, ...filters }: WaitQuery = {}, own: CallOptions = {}): Promise<Page<Wait>> {
    const kinds = kind === undefined ? {} : { kind: [kind].flat().join(',') }
    const query = {
      ...filters,
      ...kinds,
      ...Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`metadata.${name}`, value])),
    }
    return http.call({ method: 'GET', path: '/v1/waits', query, ...own, read: response => readPage<Wait, string>(response, 'wait') })
  }
}

/** @param path of the task */
export function createTaskWaitCalls(http: Http, path: string): TaskWaitCalls {
  return { answer, signal }

  function answer(wait: string | Pick<Wait, 'id'>, body: AnswerBody, own: Keyed = {}): Promise<Wait> {
    const id = encodeURIComponent(typeof wait === 'string' ? wait : wait.id)
    const read = (response: Response) => readJson(response, given => readEntity<Wait>(given.wait, 'wait'))
    return http.call({ method: 'POST', path: `${path}/waits/${id}/answer`, body, ...own, read })
  }

  function signal(name: string, data: Json = null, own: Keyed = {}): Promise<'delivered' | 'kept'> {
    const read = (response: Response) => readJson(response, given => (given.status === 'delivered' ? 'delivered' : 'kept'))
    return http.call({ method: 'POST', path: `${path}/signals`, body: { name, data }, ...own, read })
  }
}

/** The open waits of turns, in the order in which they were asked. */
export function openWaits(turns: readonly Pick<Turn, 'waits'>[]): Wait[] {
  return turns.flatMap(({ waits = [] }) => waits.filter(({ status }) => status === 'open'))
}
