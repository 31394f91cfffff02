/** Declaring a tool: what a model is told of it, and the function that runs once its arguments are complete and valid. */
import { type Json, type JsonObject, RivuletError } from '@rivulet/protocol'
import { z } from 'zod'
import { messageOf } from './agent-error.ts'
import type { ToolDefinition } from './model.ts'

export type ToolContext = {
  /** Fires when the run is aborted. Hand it to everything that waits. */
  signal: AbortSignal
  callId: string
  /** Shows how far the call is: text is appended, any other value replaces what was shown. Dropped once the call has its result. */
  progress(update: Json): void
  /** The trace that the call is a part of, for the header of this name in what the tool asks of others. */
  traceparent?: string | undefined
}

export type ToolOptions<S extends z.ZodType> = {
  /** 1 to 64 of a-z, A-Z, 0-9, _ and -. */
  name: string
  description: string
  /** An object schema: models name their arguments. */
  input: S
  /** The calls of a response that has one of these run one by one, in order. Default false. */
  sequential?: boolean
  /** Answers any JSON value. What it throws is told to the model as an error. */
  run(args: z.output<S>, context: ToolContext): unknown
}

export type Tool = ToolDefinition & {
  readonly sequential: boolean
  /** Checks the arguments of a call. */
  check(args: Json): Promise<{ isValid: true; run(context: ToolContext): unknown } | { isValid: false; reason: string }>
}

export function defineTool<S extends z.ZodType>({ name, description, input, sequential = false, run }: ToolOptions<S>): Tool {
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) refuse(name, 'use 1 to 64 of a-z, A-Z, 0-9, _ and -')
  return { name, description, sequential, parameters: parametersOf(name, input), check }

  async function check(args: Json): ReturnType<Tool['check']> {
    const parsed = await input.safeParseAsync(args)
    if (!parsed.success) return { isValid: false, reason: z.prettifyError(parsed.error) }
    return { isValid: true, run: context => run(parsed.data, context) }
  }
}

function parametersOf(name: string, input: z.ZodType): JsonObject {
  const { $schema: _, ...schema } = schemaOf(name, input)
  if (schema.type !== 'object') refuse(name, 'its input has to be an object schema, as z.object makes it')
  return schema as JsonObject
}

function schemaOf(name: string, input: z.ZodType): z.core.JSONSchema.BaseSchema {
  try {
    return z.toJSONSchema(input, { io: 'input' })
  } catch (cause) {
    return refuse(name, `its input cannot be described to a model: ${messageOf(cause)}`, cause)
  }
}

function refuse(name: string, reason: string, cause?: unknown): never {
  throw new RivuletError('validation_failed', `Tool ${JSON.stringify(name)}: ${reason}`, { cause })
}
