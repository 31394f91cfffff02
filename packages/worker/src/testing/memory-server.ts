/**
 * The server of one turn, in memory: what a worker asks of the platform, without Postgres, Redis or HTTP. It keeps the log, the steps and the
 * waits from one attempt to the next, and decides about a retry as the API does. Timers are due at once, so that no test waits for a time.
 */
import { createHash, randomUUID } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import type { HistoryMessage } from '@rivulet/agent'
import type { Append } from '@rivulet/broker'
import type { Claim, FinishBody, WantedChildInput, WantedWait } from '@rivulet/contract/internal'
import {
  applyEvent,
  type Content,
  closingEvents,
  defaultLimits,
  type Event,
  errorTable,
  type Failure,
  formatCursor,
  isErrorCode,
  type Json,
  type Message,
  messagesOf,
  noState,
  type OutcomeStatus,
  origin,
  RivuletError,
  restoreState,
  type State,
  type Task,
  text,
  type Wait,
  type WaitAction,
} from '@rivulet/protocol'
import type { TurnCalls } from '../server-calls.ts'
import type { FileBytes } from '../turn/file-calls.ts'
import type { Appender } from '../writer/appender.ts'
import type { MemoryStore } from './memory-store.ts'

export type TestAnswer = 'expired' | { action?: WaitAction; content?: Json; comment?: string }
/** What a child says, or how it ends. */
export type TestChild = string | { status?: OutcomeStatus; text?: string; error?: Failure }
export type TestFile = { bytes: Uint8Array; mimeType: string; name?: string }

type MemoryServerOptions = {
  task: Task
  input: Content | null
  history: readonly HistoryMessage[]
  maxAttempts: number
  answer: ((wait: Wait) => TestAnswer | Promise<TestAnswer>) | undefined
  files: Readonly<Record<string, TestFile>>
  state: Json | undefined
  store: MemoryStore
  child: ((child: WantedChildInput) => TestChild | Promise<TestChild>) | undefined
  secrets: Readonly<Record<string, string>> | undefined
}

type MemoryServer = {
  calls: TurnCalls
  appender: Appender
  events(): Event[]
  /** Those of the turn, as they would be stored. */
  messages(): Message[]
  waits(): Wait[]
  /** The state of the task, as it would be stored. */
  state(): State
  /** How the turn ended; null before it has. */
  outcome(): FinishBody['outcome'] | null
  attempts(): number
  cancel(): void
}

const leaseMs = 3_600_000

export function createMemoryServer({
  task,
  input,
  history,
  maxAttempts,
  answer,
  files,
  state: value,
  store: values,
  child,
  secrets,
}: MemoryServerOptions): MemoryServer {
  const turn = history.length > 0 ? 2 : 1
  const earlier = history.map((message, index) => messageOf(message, index, 1))
  const given = input && messageOf({ author: 'user', content: input }, earlier.length, turn)
  const firstIndex = earlier.length + (given ? 1 : 0)
  const steps = new Map<string, string>()
  const waits = new Map<string, Wait>()
  const stored = new Map(Object.entries(files))
  const before: State | undefined = value === undefined ? undefined : { version: 1, value }
  const events: Event[] = []
  const said = new Map<string, Message[]>()
  const childIds = new Map<string, string>()
  let attempt = 0
  let outcome: FinishBody['outcome'] | null = null

  const calls: TurnCalls = {
    hello: async () => ({}),
    claim: async () => claim(),
    reopen: async () => null,
    step: async ({ name, memory }) => {
      steps.set(name, memory)
      return { result: 'remembered', isOverBudget: false }
    },
    usage: async () => false,
    store: async ({ call }) => values.use(call),
    ask: async ({ waits: wanted }) => {
      const asked: Wait[] = []
      for (const one of wanted) asked.push(waits.get(one.name) ?? (await open(one)))
      return { result: 'asked', waits: asked, isTold: true }
    },
    spawn: async ({ children: wanted }) => {
      const asked: Wait[] = []
      for (const one of wanted) if (!one.detached) asked.push(waits.get(one.name) ?? (await spawnChild(one)))
      return { result: 'spawned', children: wanted.map(({ name }) => ({ name, task: childOf(name) })), waits: asked, isTold: true }
    },
    child: async ({ name }) => said.get(name) ?? [],
    waits: async () => [...waits.values()],
    park: async () => 'answered',
    take: async () => [],
    release: async () => {},
    finish: async ({ outcome: end }) => finish(end),
    history: async () => [...earlier, ...(given ? [given] : [])],
    files: { read, store },
  }
  return {
    calls,
    appender: { append },
    events: () => events,
    messages,
    waits: () => [...waits.values()],
    state: () => state().agentState ?? noState,
    outcome: () => outcome,
    attempts,
    cancel,
  }

  function attempts(): number {
    return attempt
  }

  function claim(): Claim {
    attempt += 1
    tell({ type: 'turn.started', ...common(), firstIndex, ...(given && { input: given }), ...(before && { state: before }) })
    return {
      ...{
        result: 'claimed',
        epoch: attempt,
        attempt,
        task,
        input: given,
        firstIndex,
        isolated: false,
        kept: [],
        limits: defaultLimits,
        isOverBudget: false,
      },
      ...(before && { state: before }),
      ...(secrets && { secrets }),
      ...{ deadline: new Date(Date.now() + leaseMs).toISOString(), timeLeftMs: leaseMs },
      turn: {
        ...{ id: randomUUID(), task: task.id, number: turn, status: 'running', attempt, queuedAt: task.createdAt },
        ...(input && { input }),
        waits: [...waits.values()],
      },
      steps: Array.from(steps, ([name, memory]) => ({ name, memory })),
    }
  }

  async function append({ entries }: Append): Promise<'ok'> {
    for (const { json } of entries) tell(JSON.parse(json))
    return 'ok'
  }

  function tell(event: Event): void {
    events.push(event)
  }

  async function open(wanted: WantedWait): Promise<Wait> {
    const { expires, ...about } = wanted
    const at = new Date().toISOString()
    const expiresAt = 'at' in expires ? expires.at : new Date(Date.now() + expires.inMs).toISOString()
    const wait: Wait = { ...about, id: randomUUID(), task: task.id, turn, agent: task.agent, status: 'open', createdAt: at, expiresAt }
    tell({ type: 'turn.waiting', ...common(), wait })
    const said = wait.kind === 'timer' ? 'expired' : await answerTo(wait)
    const { action = 'accept', ...content } = said === 'expired' ? {} : said
    const closed: Wait =
      said === 'expired' ? { ...wait, status: 'expired' } : { ...wait, status: 'answered', answer: { action, ...content, at } }
    waits.set(wait.name, closed)
    tell({
      type: 'turn.resumed',
      ...common(),
      wait: wait.id,
      status: said === 'expired' ? 'expired' : 'answered',
      ...(closed.answer && { answer: closed.answer }),
    })
    return closed
  }

  async function spawnChild(wanted: WantedChildInput): Promise<Wait> {
    if (!child) throw new RivuletError('bad_call', `The turn spawns "${wanted.name}" (${wanted.agent}): give testTurn a child`)
    const { status = 'completed', text: words = '', error } = toResult(await child(wanted))
    const task = childOf(wanted.name)
    const at = new Date().toISOString()
    const about = { id: randomUUID(), task: given?.task ?? task, turn, agent: wanted.agent, createdAt: at, expiresAt: at }
    const answer = { action: 'accept', content: { status, ...(error && { error }) }, at } as const
    const named = { name: wanted.name, kind: 'task', title: `Waiting for ${wanted.agent}`, actions: [], metadata: {} } as const
    const closed: Wait = { ...about, ...named, actions: [], child: task, status: 'answered', answer }
    said.set(wanted.name, [messageOf({ author: 'agent', content: text(words) }, 0, 1)])
    waits.set(wanted.name, closed)
    tell({ type: 'child.started', ...common(), child: task, name: wanted.name })
    tell({ type: 'child.finished', ...common(), child: task, status })
    return closed
  }

  function childOf(name: string): string {
    const id = childIds.get(name) ?? randomUUID()
    childIds.set(name, id)
    return id
  }

  async function answerTo(wait: Wait): Promise<TestAnswer> {
    if (!answer) throw new RivuletError('bad_call', `The turn asks "${wait.name}" (${wait.title}): give testTurn an answer`)
    return answer(wait)
  }

  function finish(end: FinishBody['outcome']): 'retrying' | 'committed' {
    const { error } = end
    const isFinal = !error || (isErrorCode(error.code) && !errorTable[error.code].retry)
    if (!isFinal && attempt < maxAttempts) return 'retrying'
    outcome = end
    settle(end.status, end)
    return 'committed'
  }

  function settle(status: OutcomeStatus, { stopReason = 'stop', usage, error }: Partial<FinishBody['outcome']>): void {
    tell({ type: 'turn.finished', ...common(), status, stopReason, ...(usage && { usage }), ...(error && { error }) })
  }

  function cancel(): void {
    for (const event of closingEvents(state(), { ...common(), status: 'aborted' })) tell(event)
    settle('canceled', { stopReason: 'aborted' })
  }

  function state() {
    const begun = restoreState(origin, { status: 'queued', turns: [], messages: earlier })
    return events.reduce((folded, event, i) => applyEvent(folded, event, formatCursor(1, i + 1)), begun)
  }

  function messages(): Message[] {
    return messagesOf(state()).filter(({ index }) => index >= firstIndex)
  }

  async function read(id: string) {
    const file = stored.get(id)
    if (!file) throw new RivuletError('not_found', `The test has no file ${id}`)
    const { bytes, mimeType, name } = file
    return { id, name, mimeType, size: bytes.length, stream: new Blob([new Uint8Array(bytes)]).stream(), bytes: async () => bytes }
  }

  async function store(given: FileBytes, { mimeType, name }: { mimeType: string; name?: string }) {
    const bytes = new Uint8Array(await bytesOf(given))
    const id = randomUUID()
    const named = name === undefined ? {} : { name }
    stored.set(id, { bytes, mimeType, ...named })
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    return { id, mimeType, size: bytes.length, sha256, createdAt: new Date().toISOString(), ...named }
  }

  function common() {
    return { task: task.id, turn, attempt, at: Date.now() }
  }

  function messageOf({ author, content, status = 'complete', metadata = {} }: HistoryMessage, index: number, number: number): Message {
    return { task: task.id, index, turn: number, attempt: 1, author, content, metadata, status, createdAt: task.createdAt }
  }
}

function toResult(child: TestChild): Exclude<TestChild, string> {
  return typeof child === 'string' ? { text: child } : child
}

async function bytesOf(given: FileBytes): Promise<Uint8Array> {
  return given instanceof Uint8Array ? given : buffer((given instanceof Blob ? given.stream() : given) as AsyncIterable<Uint8Array>)
}
