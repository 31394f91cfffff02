/**
 * Runs one turn of an agent in the calling process, for tests: the handler, its steps, its waits and its retries are those of a worker; the
 * platform around them is in memory. A failed turn is a result, not an exception.
 */
import { randomUUID } from 'node:crypto'
import type { HistoryMessage, Model } from '@rivulet/agent'
import type { WantedChildInput } from '@rivulet/contract/internal'
import {
  type Content,
  type Event,
  type Json,
  type JsonObject,
  type Message,
  type OutcomeStatus,
  type StopReason,
  type TurnFailure,
  text,
  type Usage,
  type Wait,
} from '@rivulet/protocol'
import type { AgentDefinition } from '../define-agent.ts'
import type { Logger } from '../logger.ts'
import { runTurn } from '../turn/run-turn.ts'
import type { RunningTurn } from '../turn/running-turn.ts'
import { createMemoryServer, type TestAnswer, type TestChild, type TestFile } from './memory-server.ts'
import { MemoryStore, type TestStore } from './memory-store.ts'

export type TestTurnOptions = {
  input?: string | Content
  /** The messages before the input. */
  history?: readonly HistoryMessage[]
  params?: Json
  secrets?: Readonly<Record<string, string>>
  /** The state of the task before the turn. */
  state?: Json
  /** The values of `turn.store` before the turn, by scope and key. */
  store?: TestStore
  metadata?: JsonObject
  /** In place of the model of every `turn.run`. */
  model?: Model
  /** How many attempts a turn gets that fails. Default 1. */
  attempts?: number
  /** Returns the response to each wait. `turn.sleep` needs none: it returns at once. */
  answer?: (wait: Wait) => TestAnswer | Promise<TestAnswer>
  /** Returns what each child says, or how it ends. */
  child?: (child: WantedChildInput) => TestChild | Promise<TestChild>
  /** The files that `turn.readFile` finds, by their ids. */
  files?: Readonly<Record<string, TestFile>>
  /** Cancels the turn. */
  signal?: AbortSignal
  /** Default: no output. */
  log?: Logger
}

export type TestTurn = {
  status: OutcomeStatus
  /** The messages of the turn, as the platform would store them. */
  messages: Message[]
  /** The text of its text messages, joined. */
  text: string
  /** The log of the turn, of all its attempts. */
  events: Event[]
  waits: Wait[]
  /** The state of the task after the turn; null while it was never set. */
  state: Json
  /** The values of `turn.store` after the turn, by scope and key. */
  store: TestStore
  attempts: number
  stopReason: StopReason
  usage?: Usage
  /** Why it failed; `detail` is what was thrown. */
  error?: TurnFailure
}

export async function testTurn(agent: AgentDefinition, options: TestTurnOptions = {}): Promise<TestTurn> {
  const {
    input,
    history = [],
    params = null,
    secrets,
    metadata = {},
    model,
    attempts = 1,
    answer,
    files = {},
    state,
    store: given,
    child,
    signal,
    log = silent,
  } = options
  const now = new Date().toISOString()
  const store = new MemoryStore(given)
  const server = createMemoryServer({
    task: { id: randomUUID(), agent: agent.name, status: 'running', params, metadata, createdAt: now, updatedAt: now },
    input: typeof input === 'string' ? text(input) : (input ?? null),
    ...{ history, maxAttempts: attempts, answer, files, state, store, child, secrets },
  })
  let running: RunningTurn | undefined
  const cancel = () => running?.lose()
  signal?.addEventListener('abort', cancel, { once: true })
  const tested = model ? withModel(agent, model) : agent
  while (!server.outcome() && !signal?.aborted) await attempt()
  signal?.removeEventListener('abort', cancel)
  const outcome = server.outcome()
  if (!outcome) server.cancel()
  const { status = 'canceled', stopReason = 'aborted', usage, error, detail } = outcome ?? {}
  const messages = server.messages().filter(({ author }) => author === 'agent')
  return {
    ...{ status, messages, events: server.events(), waits: server.waits(), attempts: server.attempts(), stopReason },
    state: server.state().value,
    store: store.values(),
    text: messages.map(({ content }) => (content.type === 'text' ? content.text : '')).join(''),
    ...(usage && { usage }),
    ...(error && { error: { ...error, ...(detail !== undefined && { detail }) } }),
  }

  async function attempt(): Promise<void> {
    await runTurn(tested, randomUUID(), {
      ...{ worker: 'test', server: server.calls, appender: server.appender, log, hasFreeSlot: () => true, onFenced: () => {} },
      leaving: new AbortController().signal,
      hold: turn => {
        running = turn
        return { moveTo() {}, leave() {}, noteOpen() {}, drop() {} }
      },
    })
  }
}

function withModel(agent: AgentDefinition, model: Model): AgentDefinition {
  return { ...agent, run: turn => agent.run({ ...turn, run: options => turn.run({ ...options, model }) }) }
}

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
