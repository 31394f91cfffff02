/** The argument of an agent's handler: its input and history, the ways to send output, and its steps, waits, children and state. */
import { type HistoryMessage, type OutputOf, type OutputSchema, type RunSettings, runAgent } from '@rivulet/agent'
import type { Claim } from '@rivulet/contract/internal'
import {
  type Content,
  custom,
  type File,
  fileContent,
  full,
  type Json,
  type JsonObject,
  type Message,
  type Speaker,
  start,
  type Task,
  text,
  type Update,
  type Usage,
  type UsageRecord,
} from '@rivulet/protocol'
import type { Span } from '@rivulet/runtime/trace'
import { failureOf } from '../failure.ts'
import type { Logger } from '../logger.ts'
import { type AutoSent, autoSend } from '../writer/auto-send.ts'
import { closeMessage, createMessageHandle, type MessageHandle } from '../writer/message-handle.ts'
import type { FileAbout, FileBytes, ReadFile } from './file-calls.ts'
import type { TakeInputs } from './inputs.ts'
import type { Requested } from './requested.ts'
import { withFileBytes } from './shown-files.ts'
import type { Steps, TakeStep } from './steps/steps.ts'
import { createTurnStore, type TurnStore, type UseStore } from './turn-store.ts'
import type { Ask } from './waits/ask.ts'
import type { Spawn } from './waits/spawn.ts'
import { withWholeCalls } from './whole-calls.ts'

export type Turn<Params = Json> = {
  readonly task: Task
  readonly number: number
  /** From 1; above 1 an earlier try failed or its worker died. */
  readonly attempt: number
  /** The first input. */
  readonly input: Content | null
  /** All inputs, in order: consecutive messages of the user. */
  readonly inputs: readonly Content[]
  /** The texts of the inputs, a blank line between two; empty without any. */
  readonly text: string
  /** The turn's parameters, else the task's; checked, and with defaults, where the agent has a schema for them. */
  readonly params: Params
  /** What the request asks of an agent that `accepts` it, for `turn.run`: `schema`, `tools`, `toolChoice`. Empty for any other agent. */
  readonly requested: Requested
  /** Values that no other program gets: those of the turn, else the task's. Neither send nor log them. */
  readonly secrets: Readonly<Record<string, string>>
  /** Fires when the turn is canceled, lost, out of time or given back. Hand it to everything that waits. */
  readonly signal: AbortSignal
  readonly log: Logger
  /** Where this attempt is in its trace: for `runAgent`, and its `traceparent` for everything else that is asked of others. */
  readonly span: Span
  /**
   * The task's messages so far, this turn's inputs last. Turns that were discarded are left out; aborted and failed messages, too, unless asked for. Then each
   * call of a tool has a response: one that was interrupted has an error.
   */
  history(options?: HistoryOptions): Promise<Message[]>
  /**
   * Runs a model with tools on the history, and sends all that they say. Each response and each result is a step: an attempt after a crash repeats
   * neither. With a `schema`, the last response is JSON, and `object` is its value.
   */
  run<S extends OutputSchema | undefined = undefined>(options: TurnRunOptions & { schema?: S }): Promise<TurnRun<OutputOf<S>>>
  /** Sends a stream of updates, and returns the finished messages. */
  autoSend(updates: AsyncIterable<Update> | Iterable<Update>): Promise<AutoSent>
  /** Opens a message to write by hand (manual streaming). Disposing of it closes it. */
  message(content?: Content, options?: MessageOptions): MessageHandle
  /** Opens a message for as long as `write` runs: closed complete after it, failed when it throws. */
  message<T>(content: Content, write: WriteMessage<T>): Promise<T>
  message<T>(content: Content, options: MessageOptions, write: WriteMessage<T>): Promise<T>
  /** Sends a whole message at once; its handle tells what was sent. */
  send(content: string | Content, metadata?: JsonObject): Promise<MessageHandle>
  /**
   * Does `work` once, whatever becomes of this attempt: its result and the messages that are opened in it are remembered for the turn, and the
   * next attempt gets the one and says the others again, without calling `work`. A `work` that throws is not remembered.
   */
  step: TakeStep
  /**
   * A name for steps that need one of their own: `run 1`, `run 2` … in the order of the calls, below the step that calls it. A name must be the
   * same in every attempt, so it may come from a number or from stored data, and never from a model's call ids or the time.
   */
  nameFor(kind: string): string
  readonly usage: {
    /** Counts the usage of calls whose output is not sent by `run` or `autoSend`. With the name of the model, it has a price. */
    add(usage: Usage, about?: { model?: string }): void
    /** Counts usage that messages carry, where they may not reach the log. Usage with the same id counts once. */
    note(record: UsageRecord): void
    /** Throws `budget_exceeded` when the task has used its budget: call it before you call a model. `turn.run` does so by itself. */
    checkBudget(): void
  }
  /**
   * Asks a person, or has the client run a tool, and returns the answer. The turn leaves its worker while it waits. When it is resumed, the handler runs
   * from the top: steps and waits return what they returned before, and messages that were sent are not sent again.
   */
  ask: Ask['ask']
  /** Asks for several at once. The turn is resumed once, when all of them are closed. */
  askAll: Ask['askAll']
  /** Waits for a time, without a worker. */
  sleep: Ask['sleep']
  /** Waits for a signal of this name, and returns its data. */
  waitFor: Ask['waitFor']
  /**
   * Creates a task of another agent, or of this one, waits for its end without a worker, and returns what it said. The same name in the same turn is the
   * same child, in every attempt. Limits: 3 levels deep, 16 at a time, 100 in all below one task (`too_many_children`).
   */
  spawn: Spawn['spawn']
  /** Several at once, or `atMost` so many at a time; the next ones begin when all of these have ended. */
  spawnAll: Spawn['spawnAll']
  /** As `spawnAll`, with the errors of children that were refused as values. */
  spawnEach: Spawn['spawnEach']
  /**
   * Inputs that were sent with `ifBusy: 'inject'` while this turn runs. They become messages of the user in it, and are returned; if the turn takes none,
   * they run as turns of their own after it. Call it where new words are welcome: before the next request to a model. `turn.run` does so by itself.
   */
  takeInputs: TakeInputs
  /** A file of this task: of an input, or one that was sent. */
  readFile(id: string): Promise<ReadFile>
  /** Stores a file, and sends a message that refers to it. The bytes are streamed. */
  sendFile(bytes: FileBytes, about: FileAbout): Promise<File>
  /**
   * A JSON value that the task keeps from turn to turn, beside its messages, at most 1 MiB. Viewers see each change at once; it is stored when the turn ends,
   * however it ends, and an attempt that follows another begins with what stood before the turn.
   */
  readonly state: TurnState
  /** Values that outlive the task: those of its customer (its `concurrencyKey`), of this agent, and of the tenant. */
  readonly store: TurnStore
  /** A notice of the agent's own to the viewers. It changes no message. */
  custom(name: string, data: Json): Promise<void>
}

type HistoryOptions = {
  includeUnfinished?: boolean
  /** Pictures and PDFs with their bytes in place of the ids of their files, the newest 20 MiB, as a model takes them. `turn.run` does so by itself. */
  withFiles?: boolean
}

export type TurnState = {
  /** Null while it was never set. */
  get<T = Json>(): Promise<T | null>
  set(value: Json): Promise<void>
  /** Merges an object into it (RFC 7396): null removes a key, an object is merged, any other value replaces. */
  patch(patch: JsonObject): Promise<void>
}

export type TurnRunOptions = RunSettings & { messages?: readonly HistoryMessage[]; name?: string }

export type TurnRun<Output = undefined> = AutoSent & {
  /** The text of the last response. */
  text: string
  /** How many responses the model gave. */
  steps: number
  /** The value of the last response, in a run with a `schema`. */
  object: Output
}

type MessageOptions = {
  metadata?: JsonObject
  /** Default `agent`. `system` for a notice of the program around it; what the user has said are inputs. */
  author?: Speaker
}
type WriteMessage<T> = (message: MessageHandle) => Promise<T>

type TurnDeps = Omit<Steps, 'usage' | 'within' | 'isRemembered'> & {
  claim: Claim
  ask: Ask
  spawn: Spawn
  takeInputs: TakeInputs
  checkBudget: () => void
  signal: AbortSignal
  log: Logger
  span: Span
  loadHistory: () => Promise<Message[]>
  files: TurnFiles
  useStore: UseStore
}

/** The files of one turn. */
type TurnFiles = { read(id: string): Promise<ReadFile>; store(bytes: FileBytes, about: FileAbout): Promise<File> }

/** `unawaited` names what a handler has begun and not waited for: it would be cut where it stands. */
export function createTurn(deps: TurnDeps): { turn: Turn; unawaited: () => string[] } {
  const { claim, writer, step, nameFor, addUsage, noteUsage, checkBudget, changeState, ask, spawn, takeInputs, signal, log, span } = deps
  const { loadHistory, files } = deps
  const store = createTurnStore(call => track(`turn.store.${call.action}`, deps.useStore(call)))
  const { task, turn, attempt } = claim
  const inputs = claim.inputs?.map(({ content }) => content) ?? (turn.input ? [turn.input] : [])
  const begun = new Map<symbol, string>()
  const speaking: Turn = {
    ...{ task, attempt, signal, log, span, history, message, nameFor, ...ask, ...spawn },
    number: turn.number,
    input: inputs[0] ?? null,
    inputs,
    text: inputs.flatMap(input => (input.type === 'text' ? [input.text] : [])).join('\n\n'),
    params: turn.params ?? task.params,
    requested: {},
    secrets: Object.freeze({ ...claim.secrets }),
    run: options => track('turn.run', run(options)),
    autoSend: updates => track('turn.autoSend', autoSend(writer, updates)),
    send,
    step: (name, work) => track(`turn.step "${name}"`, step(name, work)),
    usage: { add: addUsage, note: noteUsage, checkBudget },
    takeInputs: place => track('turn.takeInputs', takeInputs(place)),
    readFile: id => track('turn.readFile', files.read(id)),
    sendFile: (bytes, about) => track('turn.sendFile', sendFile(bytes, about)),
    state: {
      get: async <T>() => structuredClone(writer.state().value) as T | null,
      set: value => track('turn.state.set', changeState({ value })),
      patch: patch => track('turn.state.patch', changeState({ patch })),
    },
    store,
    custom: (name, data) => writer.write(custom(name, data)),
  }
  return { turn: speaking, unawaited: () => [...begun.values()] }

  async function track<T>(what: string, work: Promise<T>): Promise<T> {
    const key = Symbol(what)
    begun.set(key, what)
    try {
      return await work
    } finally {
      begun.delete(key)
    }
  }

  async function history({ includeUnfinished = false, withFiles = false }: HistoryOptions = {}): Promise<Message[]> {
    const stored = await loadHistory()
    const messages = includeUnfinished ? stored : withWholeCalls(stored.filter(({ status }) => status === 'complete'))
    return withFiles ? withFileBytes(messages, files) : messages
  }

  async function run<S extends OutputSchema | undefined>(options: TurnRunOptions & { schema?: S }): Promise<TurnRun<OutputOf<S>>> {
    const messages = await withFileBytes(options.messages ?? (await history()), files)
    const shown: TakeInputs<HistoryMessage> = async place => withFileBytes(await speaking.takeInputs(place), files)
    const running = runAgent({ ...options, messages, turn: { ...speaking, takeInputs: shown } })
    const sent = await autoSend(writer, running)
    const { text, steps, object } = await running.result
    // An aborted run has no object, and its turn is over.
    if (options.schema) signal.throwIfAborted()
    return { ...sent, text, steps, object: object as OutputOf<S> }
  }

  function message(content?: Content, options?: MessageOptions): MessageHandle
  function message<T>(content: Content, write: WriteMessage<T>): Promise<T>
  function message<T>(content: Content, options: MessageOptions, write: WriteMessage<T>): Promise<T>
  function message<T>(
    content: Content = text(),
    given: MessageOptions | WriteMessage<T> = {},
    write = typeof given === 'function' ? given : undefined,
  ): MessageHandle | Promise<T> {
    const { metadata, author } = typeof given === 'function' ? {} : given
    const index = writer.nextIndex()
    writer.say(start(index, content, metadata, author), { strict: true })
    const handle = createMessageHandle(writer, index)
    return write ? track('turn.message', writeWithin(handle, write)) : handle
  }

  async function writeWithin<T>(handle: MessageHandle, write: WriteMessage<T>): Promise<T> {
    try {
      const result = await write(handle)
      await closeMessage(writer, handle.index)
      return result
    } catch (error) {
      // The error that ends the scope is the one to tell, not that nothing more could be written.
      await closeMessage(writer, handle.index, failureOf(error)).catch(() => {})
      throw error
    }
  }

  async function sendFile(bytes: FileBytes, about: FileAbout): Promise<File> {
    const file = await files.store(bytes, about)
    await send(fileContent(file))
    return file
  }

  async function send(content: string | Content, metadata?: JsonObject): Promise<MessageHandle> {
    const index = writer.nextIndex()
    await writer.write(full(index, content, metadata), { strict: true })
    return createMessageHandle(writer, index)
  }
}
