/** Calls to the API as a client makes them: plain HTTP, unmodified responses, and waits for their conditions. */
import type { Message, State, Task, Turn } from '@rivulet/protocol'
import { type Patience, until } from '../until.ts'

export type Reply<T = unknown> = { status: number; headers: Headers; body: T }

export type ErrorReply = { error: { code: string; message: string; requestId: string; details?: { path: string; reason: string }[] } }

export type Accepted = { task: Task; turn: Turn }
export type TaskDetail = { task: Task; turns: Turn[]; state?: State }
export type Page<T, C = string> = { data: T[]; nextCursor: C | null }

export type Client = ReturnType<typeof createClient>

const ended = ['completed', 'failed', 'canceled', 'discarded']

export function createClient(url: () => string) {
  return { post, insist, get, remove, send, createTask, addTurn, cancel, detail, waitForTask, waitForEnd, messages, finishedTask }

  async function send<T = unknown>(method: string, path: string, init: Omit<RequestInit, 'method'> = {}): Promise<Reply<T>> {
    const response = await fetch(new URL(path, url()), { method, ...init })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    return { status: response.status, headers: response.headers, body: (isJson ? JSON.parse(text) : text) as T }
  }

  function post<T = unknown>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Reply<T>> {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return send('POST', path, { body: text, headers: { 'content-type': 'application/json', ...headers } })
  }

  function get<T = unknown>(path: string, headers: Record<string, string> = {}): Promise<Reply<T>> {
    return send('GET', path, { headers })
  }

  function remove(id: string): Promise<Reply> {
    return send('DELETE', `/v1/tasks/${id}`)
  }

  async function createTask(body: object): Promise<Accepted> {
    return expectStatus(await insist<Accepted>('/v1/tasks', body), 201, 200)
  }

  async function addTurn(task: string, body: object): Promise<Turn> {
    return expectStatus(await insist<{ turn: Turn }>(`/v1/tasks/${task}/turns`, body), 202).turn
  }

  async function cancel(task: string, reason?: string): Promise<Task> {
    return expectStatus(await insist<{ task: Task }>(`/v1/tasks/${task}/cancel`, reason === undefined ? {} : { reason }), 200).task
  }

  /** Under a key, so that a request that is sent again is done once. */
  function insist<T>(path: string, body: object): Promise<Reply<T>> {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    return untilServed(path, () => post<T>(path, body, headers))
  }

  function read<T>(path: string): Promise<Reply<T>> {
    return untilServed(path, () => get<T>(path))
  }

  async function detail(task: string): Promise<TaskDetail> {
    return expectStatus(await read<TaskDetail>(`/v1/tasks/${task}`), 200)
  }

  /** The task once the condition holds. */
  async function waitForTask(task: string, condition: (detail: TaskDetail) => boolean, patience?: Patience): Promise<TaskDetail> {
    let last: TaskDetail | undefined
    try {
      return await until(
        `task ${task} gets there`,
        async () => {
          last = await detail(task)
          return condition(last) && last
        },
        patience,
      )
    } catch (error) {
      throw new Error(`${String(error)}\nIt is ${JSON.stringify(last)?.slice(0, 2_000)}`)
    }
  }

  /** The task once all its turns have ended. */
  function waitForEnd(task: string, patience?: Patience): Promise<TaskDetail> {
    return waitForTask(
      task,
      ({ task: { status }, turns }) => [status, ...turns.map(turn => turn.status)].every(is => ended.includes(is)),
      patience,
    )
  }

  async function messages(task: string): Promise<Message[]> {
    const found: Message[] = []
    for (let after: number | null = -1; after !== null; ) {
      const query: string = after < 0 ? '' : `?after=${after}`
      const page: Page<Message, number> = expectStatus(await read<Page<Message, number>>(`/v1/tasks/${task}/messages${query}`), 200)
      found.push(...page.data)
      after = page.nextCursor
    }
    return found
  }

  /** Creates a task, waits for its end, and reads what it said. */
  async function finishedTask(body: object, patience?: Patience): Promise<TaskDetail & { messages: Message[] }> {
    const { task } = await createTask(body)
    const end = await waitForEnd(task.id, patience)
    return { ...end, messages: await messages(task.id) }
  }
}

/** Asks again after 503, as any client does: on a busy machine, Postgres may take longer than an API waits for it. */
function untilServed<T>(path: string, ask: () => Promise<Reply<T>>): Promise<Reply<T>> {
  return until(`${path} is served`, async () => {
    const reply = await ask()
    return reply.status !== 503 && reply
  })
}

function expectStatus<T>({ status, body }: Reply<T>, ...expected: number[]): T {
  if (!expected.includes(status)) throw new Error(`Answered ${status} instead of ${expected.join(' or ')}: ${JSON.stringify(body)}`)
  return body
}
