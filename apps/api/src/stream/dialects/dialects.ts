/**
 * The dialects that `?format=` asks for, by name: a view of `packages/views`, or a folder beside this file. The dialects of `openai/`, `ag-ui/` and
 * `a2a/` are not here, because they have routes of their own.
 */
import type { StreamFormat } from '@rivulet/protocol'
import { createTaskMessageUpdates } from '@rivulet/views/agentex'
import { createDeltas } from '@rivulet/views/agentkit'
import { createAgentEvents } from '@rivulet/views/coding-agent'
import { createStreamEvents } from '@rivulet/views/mini-claw-code'
import { aiSdk } from './ai-sdk/ai-sdk.ts'
import type { Dialect } from './dialect.ts'
import { viewDialect } from './views/view-dialect.ts'

export const dialects: Readonly<Record<StreamFormat, Dialect>> = {
  'ai-sdk': aiSdk,
  agentex: viewDialect('agentex', createTaskMessageUpdates),
  agentkit: viewDialect('agentkit', createDeltas),
  'coding-agent': viewDialect('coding-agent', createAgentEvents),
  'mini-claw-code': viewDialect('mini-claw-code', createStreamEvents),
}
