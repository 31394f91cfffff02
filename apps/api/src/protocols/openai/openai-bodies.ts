/**
 * The bodies of OpenAI's APIs. They are lenient, because OpenAI's SDKs gain fields every month: an unknown field is ignored. A field that asks for
 * something that an agent does not do is refused, so that nothing is silently done otherwise. What an agent may do with a request is passed
 * to it as `params`.
 */
import {
  type AgentSettings,
  agentNameSchema,
  type Json,
  type JsonObject,
  jsonObjectSchema,
  jsonSchema,
  RivuletError,
} from '@rivulet/protocol'
import { z } from 'zod'
import { requireAgent } from '../../store/agents/agents.ts'
import type { Database } from '../../store/connection/database.ts'
import type { Tenant } from '../../store/connection/tenant.ts'
import { fittingParams } from '../../store/tasks/accept/check-params.ts'
import { chatMessageSchema, inputItemSchema, wrong } from './openai-input.ts'

const metadata = z.record(z.string().max(64), z.string().max(512)).nullish()

/** Passed on to the agent. `params` is ours: any further parameters of the agent. */
const options = {
  params: jsonObjectSchema.nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  reasoning: jsonObjectSchema.nullish(),
}

const formatSchema = jsonObjectSchema.and(z.looseObject({ type: z.string() }))

export const createResponseBody = z.object({
  ...options,
  model: z.string(),
  input: z.union([z.string(), z.array(inputItemSchema).min(1).max(1_000)]),
  instructions: z.string().nullish(),
  max_output_tokens: z.int().nullish(),
  max_tool_calls: z.int().nullish(),
  previous_response_id: z.string().nullish(),
  conversation: z.union([z.string(), z.object({ id: z.string() })]).nullish(),
  metadata,
  background: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  store: z.boolean().nullish(),
  tools: z.array(jsonObjectSchema).max(200).nullish(),
  tool_choice: jsonSchema.optional(),
  text: z.object({ format: formatSchema.nullish() }).nullish(),
  prompt: z.unknown().optional(),
})

export const chatCompletionBody = z.object({
  ...options,
  model: z.string(),
  messages: z.array(chatMessageSchema).min(1).max(1_000),
  max_tokens: z.int().nullish(),
  max_completion_tokens: z.int().nullish(),
  reasoning_effort: z.string().nullish(),
  metadata,
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.int().nullish(),
  tools: z.array(jsonObjectSchema).max(200).nullish(),
  functions: z.array(z.unknown()).nullish(),
  tool_choice: jsonSchema.optional(),
  modalities: z.array(z.string()).nullish(),
  response_format: formatSchema.nullish(),
})

/** `hide`: the caller joins all deltas, so what follows a failed attempt comes when it is certain. */
export const retriesQuery = z.object({ retries: z.enum(['show', 'hide']).optional() })

export type CreateResponse = z.output<typeof createResponseBody>
export type ChatCompletion = z.output<typeof chatCompletionBody>

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
