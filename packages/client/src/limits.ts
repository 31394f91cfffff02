/** Manages how much of each agent the tenant's own tasks may use. */
import type { AgentLimits, AgentLimitsInput } from '@rivulet/contract/limits'
import type { CallOptions, Http } from './http/http.ts'
import { pathOf } from './http/path-of.ts'
import { readField, readList, readNothing } from './http/responses.ts'

export type LimitCalls = {
  list(options?: CallOptions): Promise<AgentLimits[]>
  get(agent: string, options?: CallOptions): Promise<AgentLimits>
  /** Replaces the limits of the agent: a limit that is left out no longer holds. */
  set(agent: string, limits: AgentLimitsInput, options?: CallOptions): Promise<AgentLimits>
  remove(agent: string, options?: CallOptions): Promise<void>
}

export function createLimitCalls({ call }: Http): LimitCalls {
  const path = '/v1/limits'
  const read = readField<AgentLimits>('limits')
  return {
    list: own => call({ path, ...own, read: readList<AgentLimits>('limits') }),
    get: (agent, own) => call({ path: pathOf('limits', agent), ...own, read }),
    set: (agent, body, own) => call({ method: 'PUT', path: pathOf('limits', agent), body, ...own, read }),
    remove: (agent, own) => call({ method: 'DELETE', path: pathOf('limits', agent), ...own, read: readNothing }),
  }
}
