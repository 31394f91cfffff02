/** The definition of a tool: its description for the model, and the function that runs once the arguments are complete and valid. */
import { type Json, type JsonObject, objectSchemaOf, RivuletError } from '@rivulet/protocol'
import { z } from 'zod'
import { messageOf } from '../agent-error.ts'
import type { AgentTurn } from '../loop/durable.ts'
import type { ToolDefinition } from '../model/model.ts'
import type { GivenRound } from './round.ts'

export type ToolCall = { tool: string; args: Json; callId: string }

export type ToolContext = {
  /** Fires when the run is aborted. Pass it to every call that waits. */
  signal: AbortSignal
  callId: string
  /** Shows progress: text is appended, any other value replaces the earlier one. Ignored once the call has its result. */
  progress(update: Json): void
  /** The trace of the call. Send it as the header `traceparent` of the tool's own requests. */
  traceparent?: string | undefined
  /** The turn of the run, if it has one: for a run inside the tool, whose responses and results are steps of their own. */
  turn?: AgentTurn | undefined
  /** For a tool with rounds: what it needed. Absent in the first round. */
  round?: GivenRound | undefined
}

/** A tool that the caller of the agent runs: the turn waits for its result. */
export type ClientToolOptions<S extends z.ZodType> = Pick<ToolOptions<S>, 'name' | 'description' | 'input'> & { where: 'client' }

export type ToolOptions<S extends z.ZodType> = {
  /** 1 to 64 characters of a-z, A-Z, 0-9, _, - and dots. A provider that accepts no dots gets underscores in their place. */
  name: string
  description: string
  /** An object schema, because models send named arguments. */
  input: S
  /** When a response calls a sequential tool, all its calls run one by one, in order. Default false. */
  sequential?: boolean
  /** The call has a response at once, and the model goes on. The result follows as a notice; the run waits for it. Default false. */
  background?: boolean
  /** Returns any JSON value. An error that it throws becomes an error response, which the model sees. */
  run(args: z.output<S>, context: ToolContext): unknown
}

export type Tool = ToolDefinition & {
  readonly sequential: boolean
  readonly background?: boolean
  /** Its calls may take several rounds (`rounds.ts`). Default false. */
  readonly hasRounds?: boolean
  /** Where it runs: in this process, in the client, or as a child of the turn. Default `agent`. */
  readonly where?: 'agent' | 'client' | 'child'
  /** For a child: its agent, and how the arguments of a call become its input. */
  readonly child?: { agent: string; timeoutMs?: number; inputOf(args: Json): string }
  /** Checks the arguments of a call. */
  check(args: Json): Promise<{ isValid: true; run(context: ToolContext): unknown } | { isValid: false; reason: string }>
}

export function defineTool<S extends z.ZodType>(options: ToolOptions<S> | ClientToolOptions<S>): Tool {
  const { name, description, input } = options
  const isClients = 'where' in options
  const run = isClients ? runsElsewhere : options.run
  const sequential = !isClients && (options.sequential ?? false)
  requireName(name)
  const background = !isClients && (options.background ?? false)
  return { name, description, sequential, background, where: isClients ? 'client' : 'agent', parameters: parametersOf(name, input), check }

  async function check(args: Json): ReturnType<Tool['check']> {
    const parsed = await input.safeParseAsync(args)
    if (!parsed.success) return { isValid: false, reason: z.prettifyError(parsed.error) }
    return { isValid: true, run: context => run(parsed.data, context) }
  }
}

export type AgentToolOptions<S extends z.ZodType> = {
  description: string
  /** Default: an object with the text `input`. */
  input?: S
  /** The name of the tool. Default: that of the agent. */
  name?: string
  /** What the agent gets as its input. Default: the text `input` of the arguments, else the arguments as JSON. */
  inputOf?: (args: z.output<S>) => string
  /** For the child. */
  timeoutMs?: number
}

/** A tool whose work another agent does, as a child of the turn: the turn waits for it without a worker, and its text is the result. */
export function agentTool<S extends z.ZodType = typeof textInput>(agent: string, options: AgentToolOptions<S>): Tool {
  const { description, input = textInput, name = agent, inputOf, timeoutMs } = options
  const tool = defineTool({ name, description, input, run: runsElsewhere })
  const write = (args: Json) => (inputOf ? inputOf(args as z.output<S>) : textOf(args))
  return { ...tool, where: 'child', child: { agent, ...(timeoutMs !== undefined && { timeoutMs }), inputOf: write } }
}

const textInput = z.object({ input: z.string().describe('What to do, with everything that is needed to do it') })

function textOf(args: Json): string {
  const own = typeof args === 'object' && args !== null && !Array.isArray(args) ? args.input : undefined
  return typeof own === 'string' ? own : JSON.stringify(args)
}

export function runsElsewhere(): never {
  throw new RivuletError('bad_call', 'The client, or a child of the turn, runs this tool, so it needs a run in a turn')
}

export function requireName(name: string): void {
  if (!/^[a-zA-Z0-9_.-]{1,64}$/.test(name)) reject(name, 'name must be 1 to 64 characters of a-z, A-Z, 0-9, _, - and dots')
}

function parametersOf(name: string, input: z.ZodType): JsonObject {
  try {
    return objectSchemaOf(input)
  } catch (cause) {
    return reject(name, `input ${messageOf(cause)}`, cause)
  }
}

function reject(name: string, reason: string, cause?: unknown): never {
  throw new RivuletError('validation_failed', `Tool ${JSON.stringify(name)}: ${reason}`, { cause })
}
