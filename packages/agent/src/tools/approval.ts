/**
 * Decides about the calls of one response before any of them runs: by the policy of the run, by a person, or by the client that runs the tool itself.
 *
 * All questions of a response are asked at once, before a response message is open, so that the turn can wait without a worker. What a person approves
 * is what runs: the arguments of the call, or the ones that the person has edited.
 */
import { type ContentOf, type Json, paramsSchemaSchema } from '@rivulet/protocol'
import { messageOf } from '../agent-error.ts'
import type { ToolAnswer, ToolChild, ToolChildResult, ToolQuestion } from '../loop/durable.ts'
import type { Tool, ToolCall } from './tool.ts'
import type { ToolOutcome } from './tool-execution.ts'
import type { Toolbox } from './toolbox.ts'

/** `ask`: a person decides. With an object, the question has these fields. */
export type Verdict =
  | 'allow'
  | 'ask'
  | { deny: string }
  | { ask: Partial<Pick<ToolQuestion, 'title' | 'detail' | 'assignee' | 'expiresIn' | 'hold'>> }

export type Approve = (call: ToolCall) => Verdict | Promise<Verdict>

/** How a call goes on: it runs with these arguments, or has a result already. */
export type Decision = { run: Json } | { result: Json } | { fail: string } | { outcome: ToolOutcome }

type Request = ContentOf<'tool_request'>

/** A limit for the questions of one response together, because the waits of a turn have one. */
const maxSchemaChars = 16 * 1024

export type DecideDeps = {
  toolbox: Toolbox
  approve: Approve | undefined
  /** Spawns in the turn; null outside a turn. */
  spawn: ((children: readonly ToolChild[]) => Promise<readonly ToolChildResult[]>) | null
  /** Asks in the turn; null outside a turn. */
  ask: ((questions: Record<string, ToolQuestion>) => Promise<Record<string, ToolAnswer>>) | null
}

/** @param requests by the name of their question. */
export async function decideCalls(requests: ReadonlyMap<string, Request>, deps: DecideDeps): Promise<Map<string, Decision>> {
  const decisions = await approveCalls(requests, deps)
  await runChildren(requests, decisions, deps)
  return decisions
}

/** The calls of tools that are agents: all children of a response run at once. */
async function runChildren(
  requests: ReadonlyMap<string, Request>,
  decisions: Map<string, Decision>,
  { toolbox, spawn }: DecideDeps,
): Promise<void> {
  const children: ToolChild[] = []
  for (const [name, decision] of decisions) {
    const request = requests.get(name) as Request
    const tool = toolbox.get(request.name)
    if (!tool?.child || !('run' in decision)) continue
    const checked = await tool.check(decision.run)
    if (!spawn) decisions.set(name, { fail: 'Not run: only a turn can spawn a child.' })
    else if (!checked.isValid) decisions.set(name, { fail: `Invalid arguments for ${request.name}:\n${checked.reason}` })
    else {
      const { agent, timeoutMs, inputOf } = tool.child
      children.push({ name, agent, input: inputOf(decision.run), callId: request.callId, ...(timeoutMs !== undefined && { timeoutMs }) })
    }
  }
  if (children.length === 0 || !spawn) return
  const results = await spawn(children)
  for (const [i, { name }] of children.entries()) decisions.set(name, childDecision(results[i]))
}

function childDecision(result: ToolChildResult | undefined): Decision {
  if (!result) return { fail: 'Not run: the child is missing.' }
  if ('code' in result) return { fail: `Not run (${result.code}): ${result.message}` }
  if (result.status === 'completed') return { result: result.text }
  return { fail: `The agent ${result.status}${result.error ? `: ${result.error.message}` : '.'}` }
}

async function approveCalls(requests: ReadonlyMap<string, Request>, deps: DecideDeps): Promise<Map<string, Decision>> {
  const decisions = new Map<string, Decision>()
  const questions: Record<string, ToolQuestion> = {}
  for (const [name, request] of requests) {
    const first = await firstDecision(request, deps)
    if ('question' in first) questions[name] = withSchema(first.question, deps.toolbox.get(request.name), maxSchemaChars / requests.size)
    else decisions.set(name, first)
  }
  const names = Object.keys(questions)
  if (names.length === 0) return decisions
  const answers = deps.ask ? await deps.ask(questions) : {}
  for (const name of names) {
    const [request, answer] = [requests.get(name) as Request, answers[name]]
    decisions.set(
      name,
      answer ? decisionOf(questions[name] as ToolQuestion, request, answer) : { fail: 'Not run: only a turn can ask for an approval.' },
    )
  }
  return decisions
}

async function firstDecision(request: Request, { toolbox, approve }: DecideDeps): Promise<Decision | { question: ToolQuestion }> {
  const { name: tool, callId, arguments: args } = request
  try {
    const verdict = approve ? await approve({ tool, args, callId }) : 'allow'
    if (typeof verdict === 'object' && 'deny' in verdict) return { fail: `Not allowed: ${verdict.deny}` }
    const call = { tool, callId, arguments: args }
    const isClients = toolbox.get(tool)?.where === 'client'
    if (verdict === 'allow')
      return isClients ? { question: { kind: 'tool', title: `Run ${tool}`, ...call, actions: ['accept', 'decline'] } } : { run: args }
    const about = typeof verdict === 'object' ? verdict.ask : {}
    const kind = isClients ? 'tool' : 'approval'
    const actions = isClients ? (['accept', 'decline'] as const) : (['accept', 'edit', 'decline'] as const)
    return { question: { kind, title: `Run ${tool}?`, ...call, actions, onExpire: 'decline', ...about } }
  } catch (error) {
    return { fail: `Not run: the approval failed: ${messageOf(error)}` }
  }
}

/** A schema that the server cannot check, or a large one, is left out: then the edited arguments are checked when the call runs. */
function withSchema(question: ToolQuestion, tool: Tool | undefined, maxChars: number): ToolQuestion {
  const schema = tool?.parameters
  if (!schema || !question.actions.includes('edit') || JSON.stringify(schema).length > maxChars) return question
  return paramsSchemaSchema.safeParse(schema).success ? { ...question, argumentsSchema: schema } : question
}

function decisionOf({ kind }: ToolQuestion, { arguments: args }: Request, { action, content, comment }: ToolAnswer): Decision {
  if (action === 'decline') return { fail: `Declined${comment ? `: ${comment}` : '.'}` }
  if (kind === 'tool') return { result: (content ?? null) as Json }
  return { run: action === 'edit' ? ((content ?? null) as Json) : args }
}
