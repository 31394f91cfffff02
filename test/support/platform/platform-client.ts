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
  return { post, get, remove, send, createTask, addTurn, cancel, detail, waitForTask, waitForEnd, messages, finishedTask }

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

  function get<T = unknown>(path: string): Promise<Reply<T>> {
    return send('GET', path)
  }

  function remove(id: string): Promise<Reply> {
    return send('DELETE', `/v1/tasks/${id}`)
  }

  async function createTask(body: object): Promise<Accepted> {
    return expectStatus(await post<Accepted>('/v1/tasks', body), 201, 200)
  }

  /** Again, under its key, while an API has more to do than its database: two hundred at once on a busy machine are that. */
  async function addTurn(task: string, body: object): Promise<Turn> {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const reply = await until(`a turn of ${task} is answered`, async () => {
      const given = await post<{ turn: Turn }>(`/v1/tasks/${task}/turns`, body, headers)
      return given.status !== 503 && given
    })
    return expectStatus(reply, 202).turn
  }

  async function cancel(task: string, reason?: string): Promise<Task> {
    return expectStatus(await post<{ task: Task }>(`/v1/tasks/${task}/cancel`, reason === undefined ? {} : { reason }), 200).task
  }

  async function detail(task: string): Promise<TaskDetail> {
    return expectStatus(await get<TaskDetail>(`/v1/tasks/${task}`), 200)
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
      const page: Page<Message, number> = expectStatus(await get<Page<Message, number>>(`/v1/tasks/${task}/messages${query}`), 200)
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

function expectStatus<T>({ status, body }: Reply<T>, ...expected: number[]): T {
  if (!expected.includes(status)) throw new Error(`Answered ${status} instead of ${expected.join(' or ')}: ${JSON.stringify(body)}`)
  return body
}
