/** Models, tools and the agent loop. They emit the protocol's updates and do not need the platform: they run in a worker, a terminal, a test or a browser. */
export { AgentError } from './agent-error.ts'
export { type ChannelReporter, channelReporter } from './loop/channel-reporter.ts'
export type { Compaction } from './loop/compaction.ts'
export type { AgentTurn, ToolAnswer, ToolQuestion } from './loop/durable.ts'
export type { Observer, ObserverFailurePolicy } from './loop/observers.ts'
export { type BufferedReporter, bufferedReporter, textReporter, usageReporter } from './loop/reporters.ts'
export { type RunOptions, type RunResult, type RunSettings, type RunStream, runAgent } from './loop/run-agent.ts'
export { type McpToolsOptions, mcpTools } from './mcp/mcp-tools.ts'
export { type Chat, type ChatReply, chatModel } from './model/chat-model.ts'
export { system, user } from './model/conversation.ts'
export { createEventStream, type EventSink, type EventStream, type EventStreamOptions } from './model/event-stream.ts'
export { defaultModelLimits, type ModelLimits } from './model/limits.ts'
export type {
  HistoryMessage,
  Model,
  ModelOptions,
  ModelRequest,
  ModelResult,
  ModelStream,
  SpokenMessage,
  ToolDefinition,
} from './model/model.ts'
export type { OutputOf, OutputSchema } from './model/output-schema.ts'
export { type AnthropicOptions, anthropicModel } from './providers/anthropic/anthropic-model.ts'
export { type OpenaiOptions, openaiModel } from './providers/openai/openai-model.ts'
export type { ProviderOptions } from './providers/provider-options.ts'
export type { RetryPolicy } from './providers/retry-delay.ts'
export {
  call,
  callText,
  fail,
  type Script,
  type ScriptFactory,
  type ScriptPart,
  type ScriptReply,
  type ScriptStep,
  say,
  think,
  wait,
} from './scripted/script.ts'
export { type ScriptedModel, type ScriptedModelOptions, scriptedModel } from './scripted/scripted-model.ts'
export type { Chunking } from './scripted/text-chunks.ts'
export type { Approve, Verdict } from './tools/approval.ts'
export { clientTools } from './tools/client-tools.ts'
export {
  type AgentToolOptions,
  agentTool,
  type ClientToolOptions,
  defineTool,
  type Tool,
  type ToolCall,
  type ToolContext,
  type ToolOptions,
} from './tools/tool.ts'
export type { ToolHooks, ToolOutcome } from './tools/tool-execution.ts'
