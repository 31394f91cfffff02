/** What the server stores of a step: its result as JSON, its messages when they are closed, its usage and its changes of the task's state. */

import { type StepMemory, stepMemorySchema } from '@rivulet/contract/internal'
import { defaultLimits, type Json, limitNames, type Message, RivuletError, toStorableJson } from '@rivulet/protocol'

/** What JSON makes of a result: a `Date` comes back as the string it says it is, a function not at all. */
export type Stored<T> = T extends Json | undefined
  ? T
  : T extends { toJSON(): infer J }
    ? Stored<J>
    : T extends bigint | symbol | ((...args: never) => unknown)
      ? never
      : T extends object
        ? { [K in keyof T]: Stored<T[K]> }
        : undefined extends T
          ? T
          : never

/** What a step returns is what is stored, also the first time: an agent sees at once what JSON makes of it. */
export function storedResult(name: string, result: unknown): Pick<StepMemory, 'result'> {
  if (result === undefined) return {}
  try {
    return { result: toStorableJson(result, defaultLimits.jsonDepth) }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    const what = `The result of step "${name}" cannot be remembered`
    throw new RivuletError('result_rejected', `${what}: ${reason}`, {
      cause,
      publicMessage: cause instanceof RivuletError ? undefined : what,
    })
  }
}

/** A message without its place, because the next attempt may have it at another one. */
export function storedMessage({
  author,
  content,
  metadata,
  status,
  stopReason,
  usage,
  response,
  error,
}: Message): StepMemory['messages'][number] {
  return {
    content,
    metadata,
    status,
    ...(author === 'system' && { author }),
    ...(stopReason && { stopReason }),
    ...(usage && { usage }),
    ...(response && { response }),
    ...(error && { error }),
  }
}

export function memoryText(name: string, memory: StepMemory, maxBytes: number): string {
  const text = JSON.stringify(memory)
  if (Buffer.byteLength(text) > maxBytes) throw tooLarge(name, maxBytes)
  return text
}

export function readMemory(text: string): StepMemory {
  return stepMemorySchema.parse(JSON.parse(text))
}

export function tooLarge(name: string, maxBytes: number): RivuletError {
  return new RivuletError(
    'step_too_large',
    `Step "${name}" is too large: the steps of a turn may store at most ${maxBytes} bytes (${limitNames.stepsBytes})`,
  )
}
