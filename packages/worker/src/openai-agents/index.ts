/**
 * The OpenAI Agents SDK for JavaScript in a turn. The SDK itself is not imported: its models and its runner are known by their shape.
 *
 * `streamThroughTurn(provider)` alone streams all output of a run. With `tellTurn(runner)` beside it, tools are streamed while they run, and handoffs
 * and agents too. Each item is sent once, by the one of them that learns of it first.
 */
export { type ApprovedRun, type RunLike, type RunStateLike, runWithApprovals } from './approvals.ts'
export { inTurn, withTurn } from './current-turn.ts'
export { fromOpenAiAgents, type RunEventLike } from './from-openai-agents.ts'
export { type ModelProviderLike, streamThroughTurn } from './model-provider.ts'
export { type RunnerLike, tellTurn } from './run-hooks.ts'
export { toolError } from './tool-errors.ts'
export { tracedFetch } from './traced-fetch.ts'
