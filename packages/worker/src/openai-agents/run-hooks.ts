/**
 * Sends to the turn what a run does beside its model: a tool's response is open while the tool runs; handoffs and agents are custom events. A
 * call that the model's provider has not sent, because it does not stream through the turn, is sent here.
 */
import { type Json, toolRequest, toolResponse, toStorableJson } from '@rivulet/protocol'
import { currentTurn } from './current-turn.ts'
import { isToolError } from './tool-errors.ts'

type Named = { name: string }
type Details = { toolCall: { type: string; callId?: string; id?: string; arguments?: string } }

/** The hooks of the SDK's `Runner`. */
export type RunnerLike = {
  on(event: 'agent_start', listener: (context: unknown, agent: Named) => void): unknown
  on(event: 'agent_end', listener: (context: unknown, agent: Named) => void): unknown
  on(event: 'agent_handoff', listener: (context: unknown, from: Named, to: Named) => void): unknown
  on(event: 'agent_tool_start', listener: (context: unknown, agent: Named, tool: Named, details: Details) => void): unknown
  on(event: 'agent_tool_end', listener: (context: unknown, agent: Named, tool: Named, result: string, details: Details) => void): unknown
}

/** Once for each runner: it serves all turns. */
export function tellTurn(runner: RunnerLike): void {
  runner.on('agent_start', (_, agent) => notice('agent.started', { agent: agent.name }))
  runner.on('agent_end', (_, agent) => notice('agent.finished', { agent: agent.name }))
  runner.on('agent_handoff', (_, from, to) => notice('agent.handoff', { from: from.name, to: to.name }))
  runner.on('agent_tool_start', (_, __, tool, { toolCall }) => startTool(tool.name, toolCall))
  runner.on('agent_tool_end', (_, __, ___, result, { toolCall }) => endTool(result, toolCall))
}

function startTool(name: string, call: Details['toolCall']): void {
  const current = currentTurn()
  const callId = callIdOf(call)
  if (!current || callId === null || current.responses.has(callId)) return
  const { turn, calls, responses, toolSpans } = current
  if (!calls.has(callId)) {
    calls.add(callId)
    unheard(turn.message({ ...toolRequest(callId, name), raw: call.arguments ?? '' }).finish())
  }
  responses.set(callId, turn.message(toolResponse(callId, name)))
  const attributes = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': name, 'gen_ai.tool.call.id': callId }
  toolSpans.set(callId, turn.span.start(`execute_tool ${name}`, { attributes }))
}

function endTool(result: unknown, call: Details['toolCall']): void {
  const current = currentTurn()
  const callId = callIdOf(call)
  const handle = callId === null ? null : current?.responses.get(callId)
  if (!current || !handle || callId === null) return
  current.responses.set(callId, null)
  const { content } = handle.current()
  const name = content.type === 'tool_response' ? content.name : ''
  const isError = isToolError(result)
  unheard(handle.replace(toolResponse(callId, name, plainResult(result), isError)))
  current.toolSpans.get(callId)?.end(isError ? { failure: { code: 'tool_failed' } } : {})
  current.toolSpans.delete(callId)
}

function notice(name: string, about: Json): void {
  const current = currentTurn()
  if (current) unheard(current.turn.custom(name, about))
}

function callIdOf({ callId, id }: Details['toolCall']): string | null {
  return callId ?? id ?? null
}

function plainResult(result: unknown): Json {
  return typeof result === 'string' ? result : toStorableJson(result ?? null, 32)
}

/** A hook cannot be awaited. If the turn rejects output, it is over, and the handler gets that error elsewhere. */
function unheard(said: Promise<unknown>): void {
  said.catch(() => {})
}
