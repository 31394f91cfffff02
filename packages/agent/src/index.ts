/** Models and tools, free of the platform: what it says are the protocol's updates, so it runs in a worker, a terminal, a test or a browser. */
export { AgentError } from './agent-error.ts'
export { type AnthropicOptions, anthropicModel } from './anthropic-model.ts'
export { type ChannelReporter, channelReporter } from './channel-reporter.ts'
export { system, user } from './conversation.ts'
export { createEventStream, type EventSink, type EventStream, type EventStreamOptions } from './event-stream.ts'
export { defaultModelLimits, type ModelLimits } from './limits.ts'
export type { HistoryMessage, Model, ModelOptions, ModelRequest, ModelResult, ModelStream, SpokenMessage, ToolDefinition } from './model.ts'
export type { Observer, ObserverFailurePolicy } from './observers.ts'
export { type OpenaiOptions, openaiModel } from './openai-model.ts'
export type { ProviderOptions } from './provider-options.ts'
export type { RetryPolicy } from './retry-delay.ts'
export { type RunOptions, type RunResult, type RunStream, runAgent } from './run-agent.ts'
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
} from './script.ts'
export { type ScriptedModel, type ScriptedModelOptions, scriptedModel } from './scripted-model.ts'
export type { Chunking } from './text-chunks.ts'
export { defineTool, type Tool, type ToolContext, type ToolOptions } from './tool.ts'
