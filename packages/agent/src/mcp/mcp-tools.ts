/**
 * The tools of an MCP server as tools of a run.
 *
 * A call of a server of 2026-07-28 may take several rounds: what it asks for becomes a wait of the turn, and a task that it returns is polled in a step
 * of its own, so that an attempt after a crash does not call the tool again. The server checks the arguments.
 */
import type { Json, JsonObject } from '@rivulet/protocol'
import { AgentError } from '../agent-error.ts'
import { sleep } from '../sleep.ts'
import { RoundOver } from '../tools/round.ts'
import type { Tool, ToolContext } from '../tools/tool.ts'
import { questionsOf, responsesOf } from './elicitation.ts'
import { connectMcp, isObject, type McpClient, type McpOptions } from './mcp-client.ts'
import { contentOf, textOf } from './tool-content.ts'

export type McpToolsOptions = McpOptions & {
  /** What the names of the tools begin with, for tools of several servers. Default: nothing. */
  prefix?: string
  /** The names of the tools to take. Default: all. */
  only?: readonly string[]
}

const tasksExtension = 'io.modelcontextprotocol/tasks'
const maxPages = 100
const maxPollMs = 30_000

/** What a call keeps between its rounds. A task that runs elsewhere, or a call that is to be made again with the responses. */
type State = { of: 'task'; taskId: string } | { of: 'call'; args: Json; requestState: Json }

/** Lists the tools now; a list that changes later needs another call of this function. */
export async function mcpTools(url: string, { prefix = '', only, ...options }: McpToolsOptions = {}): Promise<Tool[]> {
  const client = await connectMcp(url, options)
  const listed = await listTools(client)
  return listed.filter(({ name }) => !only || only.includes(name)).map(tool => toolOf(client, tool, prefix))
}

type ListedTool = { name: string; description: string; inputSchema: JsonObject }

async function listTools(client: McpClient): Promise<ListedTool[]> {
  const all: ListedTool[] = []
  let cursor: Json | undefined
  for (let page = 0; page < maxPages; page += 1) {
    const { tools, nextCursor } = await client.request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } })
    for (const tool of Array.isArray(tools) ? tools : []) {
      if (!isObject(tool) || typeof tool.name !== 'string' || !isObject(tool.inputSchema)) continue
      const { name, description, title, inputSchema } = tool
      all.push({ name, description: String(description ?? title ?? name), inputSchema })
    }
    if (typeof nextCursor !== 'string') return all
    cursor = nextCursor
  }
  throw new AgentError(`The MCP server lists its tools on more than ${maxPages} pages`)
}

function toolOf(client: McpClient, { name, description, inputSchema }: ListedTool, prefix: string): Tool {
  return {
    name: `${prefix}${name}`.replaceAll(/[^a-zA-Z0-9_.-]/g, '_').slice(0, 64),
    description,
    parameters: inputSchema,
    ...{ sequential: false, hasRounds: true, where: 'agent' },
    check: async args => ({ isValid: true, run: context => runRound(client, name, args, context) }),
  }
}

async function runRound(client: McpClient, name: string, args: Json, { signal, traceparent, turn, round }: ToolContext): Promise<Json> {
  const state = (round?.state ?? null) as State | null
  const canAsk = turn?.askAll !== undefined
  const capabilities: JsonObject = {
    ...(canAsk && { elicitation: { form: {}, url: {} } }),
    ...(turn && { extensions: { [tasksExtension]: {} } }),
  }
  const responses = round ? responsesOf(round.answers) : {}
  if (state?.of === 'task') {
    if (Object.keys(responses).length > 0) await request('tasks/update', { taskId: state.taskId, inputResponses: responses })
    return poll(state)
  }
  const first = { name, arguments: state?.args ?? args }
  const again = state ? { inputResponses: responses, ...(state.requestState !== null && { requestState: state.requestState }) } : {}
  const result = await request('tools/call', { ...first, ...again })
  if (result.resultType === 'task' && typeof result.taskId === 'string')
    throw new RoundOver({ state: { of: 'task', taskId: result.taskId } satisfies State, questions: {} })
  if (result.resultType === 'input_required') {
    const next: State = { of: 'call', args: first.arguments, requestState: result.requestState ?? null }
    throw new RoundOver({ state: next, questions: questionsOf(result.inputRequests) })
  }
  return outcomeOf(result)

  async function poll(task: Extract<State, { of: 'task' }>): Promise<Json> {
    for (;;) {
      const { status, result, error, inputRequests, pollIntervalMs } = await request('tasks/get', { taskId: task.taskId })
      const asked = status === 'input_required' ? unanswered(inputRequests) : {}
      if (Object.keys(asked).length > 0) throw new RoundOver({ state: task, questions: questionsOf(asked) })
      if (status === 'completed') return outcomeOf(isObject(result) ? result : {})
      if (status === 'failed') throw new AgentError(isObject(error) ? String(error.message) : 'The task failed')
      if (status === 'cancelled') throw new AgentError('The task was canceled')
      await sleep(Math.min(Math.max(Number(pollIntervalMs) || 1_000, 50), maxPollMs), signal)
    }
  }

  /** The server may not have taken the responses of this round yet. It never uses a key again. */
  function unanswered(inputRequests: Json | undefined): JsonObject {
    const entries = Object.entries(isObject(inputRequests) ? inputRequests : {})
    return Object.fromEntries(entries.filter(([key]) => !(key in responses)))
  }

  function request(method: string, params: JsonObject): Promise<JsonObject> {
    return client.request({ method, params, capabilities, signal, ...(traceparent && { headers: { traceparent } }) })
  }
}

function outcomeOf(result: JsonObject): Json {
  if (result.isError === true) throw new AgentError(textOf(result) || 'The tool failed')
  return contentOf(result)
}
