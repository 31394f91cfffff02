/**
 * Durable steps: the server stores the result of a step, so that the next attempt skips the step and sends its messages again, complete.
 *
 * Steps run one at a time, each under a unique name. A step's messages are those that are opened in it, and they are closed before it is stored;
 * a step that throws, or whose turn is over, is not stored. A skipped step can only return its result and send its messages, so a step may not
 * write to earlier messages, and no other code may open a message while it runs.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Claim,
  defaultLimits,
  done,
  type Failure,
  type Json,
  limitNames,
  type Message,
  maxStepName,
  RivuletError,
  type StepMemory,
  start,
  stepMemorySchema,
  toStorableJson,
  toStorableText,
  type Update,
} from '@rivulet/protocol'
import { failureOf } from './failure.ts'
import { closeMessage } from './writer/message-handle.ts'
import type { TurnWriter } from './writer/turn-writer.ts'

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

export type TakeStep = <T>(name: string, work: () => Promise<T> | T) => Promise<Stored<T>>

export type StepsDeps = {
  writer: TurnWriter
  remembered: Claim['steps']
  /** Resolves when the next attempt will know of it. */
  remember: (name: string, memory: string) => Promise<void>
  /** What the turn may remember in all. */
  maxBytes: number
}

/** A step that is being taken. Its messages begin where the turn stood. */
type Step = { name: string; firstIndex: number; turn: symbol }

/**
 * The step that the running code belongs to. One storage for all turns: until Node 24 every storage that was ever used is kept, and looked at
 * for each promise that is made.
 */
const speaker = new AsyncLocalStorage<Step>()

/** `writer` is the turn's writer for all its output; it enforces the rules of steps. */
export function createSteps({ writer, remembered, remember, maxBytes }: StepsDeps): { writer: TurnWriter; step: TakeStep } {
  const memories = new Map(remembered.map(({ name, memory }) => [name, memory]))
  const taken = new Set<string>()
  const turn = Symbol('turn')
  let current: Step | null = null

  return { writer: { ...writer, say, write }, step }

  async function step<T>(name: string, work: () => Promise<T> | T): Promise<Stored<T>> {
    writer.checkOpen()
    checkCall(name, work)
    const own: Step = { name, firstIndex: writer.nextIndex(), turn }
    current = own
    try {
      const memory = memories.get(name)
      const result = memory === undefined ? await take(own, work) : await replay(memory)
      taken.add(name)
      // It was a T before it was JSON.
      return result as Stored<T>
    } finally {
      current = null
    }
  }

  function checkCall(name: unknown, work: unknown): void {
    if (typeof name !== 'string' || name === '' || name.length > maxStepName || toStorableText(name) !== name)
      throw new RivuletError('bad_call', `The name of a step must have 1 to ${maxStepName} characters`)
    if (typeof work !== 'function') throw new RivuletError('bad_call', `Step "${name}" needs a function`)
    if (current)
      throw new RivuletError('bad_call', `Step "${name}" begins before step "${current.name}" has ended: await each step before the next`)
    if (taken.has(name)) throw new RivuletError('bad_call', `Two steps are named "${name}", but a step is stored by its name`)
  }

  async function take(own: Step, work: () => unknown): Promise<Json | undefined> {
    const memory = await attempt(own, work)
    const text = JSON.stringify(memory)
    if (Buffer.byteLength(text) > maxBytes) throw tooLarge(own.name, maxBytes)
    await remember(own.name, text)
    return memory.result
  }

  async function attempt(own: Step, work: () => unknown): Promise<StepMemory> {
    try {
      const result = resultOf(own.name, await speaker.run(own, work))
      writer.checkOpen()
      return { ...result, messages: await close(own) }
    } catch (error) {
      // The error that ends the step is the one to tell, not that nothing more could be written.
      await close(own, failureOf(error)).catch(() => {})
      throw error
    }
  }

  async function close({ firstIndex }: Step, error?: Failure): Promise<StepMemory['messages']> {
    const messages: StepMemory['messages'] = []
    for (let index = firstIndex; index < writer.nextIndex(); index += 1) {
      await closeMessage(writer, index, error)
      const message = writer.messageAt(index)
      if (message) messages.push(withoutPlace(message))
    }
    return messages
  }

  /** Started and finished, rather than replaced: this keeps what did not complete, and the usage. */
  async function replay(memory: string): Promise<Json | undefined> {
    const { result, messages } = stepMemorySchema.parse(JSON.parse(memory))
    for (const { content, metadata, status, ...how } of messages) {
      const index = writer.nextIndex()
      await writer.write(start(index, content, metadata), { strict: true })
      await writer.write(done(index, { ...how, ...(status !== 'streaming' && { status }) }), { strict: true })
    }
    return result
  }

  function say(update: Update, options?: { strict?: boolean }): void {
    const misplaced = misplacementOf(update)
    if (misplaced) throw misplaced
    writer.say(update, options)
  }

  function write(update: Update, options?: { strict?: boolean }): Promise<void> {
    const misplaced = misplacementOf(update)
    return misplaced ? Promise.reject(misplaced) : writer.write(update, options)
  }

  function misplacementOf(update: Update): RivuletError | null {
    const within = stepWithin()
    if (!current && !within) return null
    // What is no update, or comes when the turn is over, is for the writer to refuse.
    if (typeof update?.index !== 'number' || update.type === 'custom' || writer.isOver()) return null
    if (within && within !== current)
      return new RivuletError('bad_call', `Step "${within.name}" has ended: await all output inside the step`)
    if (!current || (within === current) === update.index >= current.firstIndex) return null
    const { name } = current
    const reason = within
      ? `Step "${name}" writes to message ${update.index}, which was opened before it; a skipped step could not do that`
      : `Message ${update.index} is written outside step "${name}" while that is being taken: await the step first`
    return new RivuletError('bad_call', reason)
  }

  /** Code in a step of another turn is outside the steps of this one. */
  function stepWithin(): Step | undefined {
    const step = speaker.getStore()
    return step?.turn === turn ? step : undefined
  }
}

export function tooLarge(name: string, maxBytes: number): RivuletError {
  return new RivuletError(
    'step_too_large',
    `Step "${name}" is too large: the steps of a turn may store at most ${maxBytes} bytes (${limitNames.stepsBytes})`,
  )
}

/** What is given back is what is remembered, also the first time: an agent sees at once what JSON makes of it. */
function resultOf(name: string, result: unknown): Pick<StepMemory, 'result'> {
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

function withoutPlace({ content, metadata, status, stopReason, usage, error }: Message): StepMemory['messages'][number] {
  return { content, metadata, status, ...(stopReason && { stopReason }), ...(usage && { usage }), ...(error && { error }) }
}
