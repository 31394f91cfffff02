/**
 * Durable steps: the server stores the result of a step, so that the next attempt skips the step and sends its messages again, complete.
 *
 * Steps may run side by side and inside each other, each under a unique name. A message belongs to the code that opened it: to a step and those
 * around it, or to none. Its messages are closed before a step is stored; a step that throws, or whose turn is over, is not stored. A skipped
 * step can only return its result and send its messages, so a step may not write to the messages of other code, nor other code to its own.
 */
import { randomUUID } from 'node:crypto'
import type { Claim, StepMemory } from '@rivulet/contract/internal'
import {
  defaultLimits,
  done,
  type Failure,
  type Json,
  maxModelName,
  maxStepName,
  RivuletError,
  type StateChange,
  start,
  sumUsage,
  toStorableJson,
  toStorableText,
  type Update,
  type Usage,
  type UsageRecord,
  usageRecordsOf,
} from '@rivulet/protocol'
import { failureOf } from '../../failure.ts'
import { closeMessage } from '../../writer/message-handle.ts'
import type { TurnWriter } from '../../writer/turn-writer.ts'
import { memoryText, readMemory, type Stored, storedMessage, storedResult } from './step-memory.ts'
import { createStepScopes, type Step } from './step-scopes.ts'

export type TakeStep = <T>(name: string, work: () => Promise<T> | T) => Promise<Stored<T>>

type StepsDeps = {
  writer: TurnWriter
  remembered: Claim['steps']
  /** Resolves when the next attempt will know of it. */
  remember: (name: string, memory: string, used: UsageRecord[], durationMs: number) => Promise<void>
  /** Sends the server usage that it gets with no step, and may not find in the log. */
  sendUsage: (records: readonly UsageRecord[]) => void
  /** What the turn may remember in all. */
  maxBytes: number
}

export type Steps = {
  /** The turn's writer for all its output; it enforces the rules of steps. */
  writer: TurnWriter
  step: TakeStep
  nameFor: (kind: string) => string
  /** Counts usage that no message carries. A skipped step counts again what was counted in it. */
  addUsage: (usage: Usage, about?: { model?: string }) => void
  /** Counts usage that messages carry: with the step that the calling code belongs to, else at once. */
  noteUsage: (record: UsageRecord) => void
  /** Changes the state of the task. A skipped step makes the changes again that were made in it. */
  changeState: (change: StateChange) => Promise<void>
  /** What `addUsage` has counted. */
  usage: () => Usage | undefined
  /** The step that the calling code belongs to. */
  within: () => string | undefined
  /** Whether an earlier claim has finished this step. */
  isRemembered: (name: string) => boolean
}

export function createSteps({ writer, remembered, remember, sendUsage, maxBytes }: StepsDeps): Steps {
  const memories = new Map(remembered.map(({ name, memory }) => [name, memory]))
  const names = new Set<string>()
  const scopes = createStepScopes()
  /** Which step opened a message. Those that are not here were opened outside all steps. */
  const openers = new Map<number, Step>()
  let counted: Usage | undefined

  return {
    writer: { ...writer, say, write },
    step,
    nameFor: scopes.nameFor,
    addUsage,
    changeState,
    noteUsage,
    usage: () => counted,
    within: () => scopes.current()?.name,
    isRemembered: name => memories.has(name),
  }

  async function step<T>(name: string, work: () => Promise<T> | T): Promise<Stored<T>> {
    writer.checkOpen()
    checkCall(name, work)
    const own = scopes.open(name)
    names.add(name)
    try {
      const memory = memories.get(name)
      const result = memory === undefined ? await take(own, work) : await scopes.run(own, () => replay(memory))
      // It was a T before it was JSON.
      return result as Stored<T>
    } catch (error) {
      names.delete(name)
      sendUsage(own.used)
      throw error
    } finally {
      own.isOver = true
    }
  }

  function addUsage(usage: Usage, { model }: { model?: string } = {}): void {
    count(usage)
    noteUsage({ id: randomUUID(), ...(model !== undefined && { model }), usage })
  }

  function noteUsage({ id, model, usage }: UsageRecord): void {
    const step = scopes.current()
    const counts = Object.entries(usage).filter(([, tokens]) => Number.isFinite(tokens))
    const record = { id, ...(model !== undefined && { model: model.slice(0, maxModelName) }), usage: Object.fromEntries(counts) }
    if (step && !step.isOver && !writer.isOver()) step.used.push(record)
    else sendUsage([record])
  }

  function count(usage: Usage): void {
    counted = sumUsage([counted, usage])
    for (const step of scopes.around(scopes.current())) step.usage = sumUsage([step.usage, usage])
  }

  async function changeState(change: StateChange): Promise<void> {
    const within = scopes.current()
    scopes.checkOngoing(within)
    await writer.changeState(change)
    const stored = toStorableJson(change, defaultLimits.jsonDepth + 1) as StateChange
    for (const step of scopes.around(within)) step.changes.push(stored)
  }

  function checkCall(name: unknown, work: unknown): void {
    if (typeof name !== 'string' || name === '' || name.length > maxStepName || toStorableText(name) !== name)
      throw new RivuletError('bad_call', `The name of a step must have 1 to ${maxStepName} characters`)
    if (typeof work !== 'function') throw new RivuletError('bad_call', `Step "${name}" needs a function`)
    scopes.checkOngoing(scopes.current())
    if (names.has(name)) throw new RivuletError('bad_call', `Two steps are named "${name}", but a step is stored by its name`)
  }

  async function take(own: Step, work: () => unknown): Promise<Json | undefined> {
    const startedAt = performance.now()
    const memory = await attempt(own, work)
    const durationMs = Math.round(performance.now() - startedAt)
    await remember(own.name, memoryText(own.name, memory, maxBytes), own.used, durationMs)
    return memory.result
  }

  async function attempt(own: Step, work: () => unknown): Promise<StepMemory> {
    try {
      const result = storedResult(own.name, await scopes.run(own, work))
      own.isOver = true
      writer.checkOpen()
      return {
        ...result,
        messages: await close(own),
        ...(own.usage && { usage: own.usage }),
        ...(own.changes.length > 0 && { changes: own.changes }),
      }
    } catch (error) {
      // The error that ends the step is the one to tell, not that nothing more could be written.
      await close(own, failureOf(error)).catch(() => {})
      throw error
    }
  }

  async function close(own: Step, error?: Failure): Promise<StepMemory['messages']> {
    const messages: StepMemory['messages'] = []
    for (const index of own.indexes) {
      await closeMessage(writer, index, error)
      const message = writer.messageAt(index)
      if (!message) continue
      messages.push(storedMessage(message))
      own.used.push(...usageRecordsOf([message]))
    }
    return messages
  }

  /** Started and finished, rather than replaced: this keeps what did not complete, and the usage. */
  async function replay(memory: string): Promise<Json | undefined> {
    const { result, messages, usage, changes = [] } = readMemory(memory)
    // Stored with the step: only the sum of this attempt lacks it.
    if (usage) count(usage)
    for (const change of changes) await changeState(change)
    for (const { content, metadata, status, author, ...how } of messages) {
      const index = writer.nextIndex()
      await write(start(index, content, metadata, author), { strict: true })
      await write(done(index, { ...how, ...(status !== 'streaming' && { status }) }), { strict: true })
    }
    return result
  }

  function say(update: Update, options?: { strict?: boolean }): void {
    const within = placed(update)
    const next = writer.nextIndex()
    writer.say(identified(update), options)
    adopt(next, within)
  }

  function write(update: Update, options?: { strict?: boolean }): Promise<void> {
    try {
      const within = placed(update)
      const next = writer.nextIndex()
      const written = writer.write(identified(update), options)
      adopt(next, within)
      return written
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Usage gets an id that it keeps in every later attempt. When the turn is over, no log takes it. */
  function identified(update: Update): Update {
    if (update?.type !== 'done' || !update.usage) return update
    const { usage, response: { id = randomUUID(), model } = {} } = update
    const named = model === undefined ? { id } : { id, model }
    if (writer.isOver()) sendUsage([{ ...named, usage }])
    return { ...update, response: named }
  }

  /** The step that writes this, if it may. */
  function placed(update: Update): Step | undefined {
    const within = scopes.current()
    // What is no update, or comes when the turn is over, is for the writer to refuse.
    if (typeof update?.index !== 'number' || update.type === 'custom' || writer.isOver()) return within
    scopes.checkOngoing(within)
    if (update.index >= writer.nextIndex()) return within
    const opener = openers.get(update.index)
    if (opener === within) return within
    const reason = within
      ? `Step "${within.name}" writes to message ${update.index}, which it did not open; a skipped step could not do that`
      : `Message ${update.index} is written outside step "${opener?.name}", which opened it`
    throw new RivuletError('bad_call', reason)
  }

  /** Gives the message that an update has opened, if it has, to the step that wrote it and to those around it. */
  function adopt(next: number, within: Step | undefined): void {
    if (!within || writer.nextIndex() === next) return
    openers.set(next, within)
    for (const step of scopes.around(within)) step.indexes.push(next)
  }
}
