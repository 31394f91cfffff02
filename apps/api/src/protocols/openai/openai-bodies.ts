/** The agent and the params that a request of OpenAI's APIs names, and the requests that no agent can serve. */

import type { AgentSettings } from '@rivulet/contract/internal'
import type { ChatCompletion, CreateResponse } from '@rivulet/contract/openai'
import { agentNameSchema, type Json, type JsonObject, RivuletError } from '@rivulet/protocol'
import { requireAgent } from '../../store/agents/agents.ts'
import type { Database } from '../../store/connection/database.ts'
import type { Tenant } from '../../store/connection/tenant.ts'
import { fittingParams } from '../../store/tasks/accept/check-params.ts'
import { wrong } from './openai-input.ts'

export function rejectUnsupported(body: CreateResponse): void {
  const { prompt, previous_response_id: previous, conversation } = body
  if (prompt !== undefined && prompt !== null) throw wrong('prompt', 'There are no stored prompts')
  if (previous && conversation) throw wrong('previous_response_id', 'Use either it or conversation')
}

/** The settings of the agent that a request names as its model. */
export async function requireModel(db: Database, tenant: Tenant, model: string): Promise<AgentSettings> {
  if (!agentNameSchema.safeParse(model).success) throw new RivuletError('unknown_agent', 'No agent has this name')
  return requireAgent(db, tenant, model)
}

export function rejectUnsupportedChat({ n, functions, modalities }: ChatCompletion): void {
  if ((n ?? 1) !== 1) throw wrong('n', 'An agent has one output')
  if (functions?.length) throw wrong('functions', 'Use tools')
  if (modalities?.some(modality => modality !== 'text')) throw wrong('modalities', 'Only text is supported')
}

/**
 * `params` of the request, and its named fields that the params of the agent may have. Undefined where the request has none, so that those of the task
 * stay.
 */
export function paramsOf(
  settings: AgentSettings,
  given: JsonObject | null | undefined,
  named: Record<string, Json | null | undefined>,
): JsonObject | undefined {
  const set = Object.entries(named).filter((entry): entry is [string, Json] => entry[1] !== undefined && entry[1] !== null)
  const fitting = fittingParams(settings, Object.fromEntries(set))
  return given || Object.keys(fitting).length > 0 ? { ...given, ...fitting } : undefined
}
