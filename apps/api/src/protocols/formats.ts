/** The dialects that `?format=` names: a view of `packages/views`, or the folder of a protocol beside this file. */
import { createTaskMessageUpdates } from '@rivulet/views/agentex'
import { createDeltas } from '@rivulet/views/agentkit'
import { createAgentEvents } from '@rivulet/views/coding-agent'
import { createStreamEvents } from '@rivulet/views/mini-claw-code'
import type { Formats } from '../stream/dialects/dialect.ts'
import { aiSdk } from './ai-sdk/ai-sdk.ts'
import { viewDialect } from './views/view-dialect.ts'

export const formats: Formats = {
  'ai-sdk': aiSdk,
  agentex: viewDialect('agentex', createTaskMessageUpdates),
  agentkit: viewDialect('agentkit', createDeltas),
  'coding-agent': viewDialect('coding-agent', createAgentEvents),
  'mini-claw-code': viewDialect('mini-claw-code', createStreamEvents),
}
