/** The calls on the state of one task. */
import type { Json, State } from '@rivulet/protocol'
import type { CallOptions, Http } from '../http/http.ts'
import { readBody } from '../http/responses.ts'

export type TaskStateCalls = {
  /** As the last turn that ended or parked has left it. Version 0 and null while it was never set. */
  get(options?: CallOptions): Promise<State>
  /**
   * Replaces the state of which the caller knows this version; `any` replaces whatever is there. Rejects with `precondition_failed` if it has another
   * version, and with `task_busy` while a turn runs. A reply that was lost makes the retry of the call fail with `precondition_failed`, too.
   */
  put(value: Json, version: number | 'any', options?: CallOptions): Promise<State>
}

/** @param path of the task */
export function createTaskStateCalls(http: Http, path: string): TaskStateCalls {
  const read = readBody<State>('state')
  return {
    get: own => http.call({ path: `${path}/state`, ...own, read }),
    put: (value, version, own) => {
      const ifMatch = version === 'any' ? '*' : `"${version}"`
      return http.call({ method: 'PUT', path: `${path}/state`, body: { value }, ifMatch, ...own, read })
    },
  }
}
