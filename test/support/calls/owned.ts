/** What one tenant owns, with a mark in every text: tasks, their waits and files, schedules, webhooks, keys. A part is created when a call needs it. */
import { randomUUID } from 'node:crypto'
import type { TokenRight } from '@rivulet/contract/scopes'
import type pg from 'pg'
import { createClient, type Reply } from '../platform/platform-client.ts'
import { until } from '../until.ts'

/** In all that the owner has written, and in nothing that a caller of a test sends. */
export const mark = 'mark-of-the-owner'

export type OwnedTask = { id: string; name: string; turn: string; wait: string; file: string }

export type Owner = { url: string; pg: pg.Pool; tenant: string; key: string }

export class Owned {
  readonly #parts = new Map<string, Promise<unknown>>()
  readonly owner: Owner
  #query: Promise<string> | undefined

  constructor(owner: Owner) {
    this.owner = owner
  }

  /** Its turn has sent a message, set the state, and asks for an approval. */
  asking(): Promise<OwnedTask> {
    return this.#once('asking', () => this.#newTask())
  }

  /** The same after the approval: no turn is under way. */
  ended(): Promise<OwnedTask> {
    return this.#once('ended', async () => {
      const task = await this.#newTask()
      await this.#call('POST', `/v1/tasks/${task.id}/waits/${task.wait}/answer`, { action: 'accept', comment: mark })
      await until('the turn has ended', async () => {
        const { task: now } = await this.#call<{ task: { status: string } }>('GET', `/v1/tasks/${task.id}`)
        return now.status === 'completed'
      })
      return task
    })
  }

  /** That no task refers to. */
  file(): Promise<string> {
    return this.#once('file', () => this.#newFile())
  }

  /** A task refers to it. The name has the mark. */
  namedFile(): Promise<string> {
    return this.#once('named file', async () => {
      const file = await this.#newFile({ 'x-filename': `${mark}.txt` })
      const history = [{ author: 'user', content: { type: 'media', mimeType: 'text/plain', file } }]
      await this.#call('POST', '/v1/tasks', { agent: 'scripted', start: false, history })
      return file
    })
  }

  schedule(): Promise<string> {
    return this.#once('schedule', async () => {
      const body = {
        agent: 'scripted',
        cron: '0 0 1 1 *',
        input: mark,
        name: `${mark} ${randomUUID()}`,
        metadata: { mark },
        params: { steps: [] },
      }
      const { schedule } = await this.#call<{ schedule: { id: string } }>('POST', '/v1/schedules', body)
      return schedule.id
    })
  }

  /** With a failed delivery, which has the same id. */
  webhook(): Promise<string> {
    return this.#once('webhook', async () => {
      const body = { url: `https://example.com/${mark}`, events: ['task.created'], agent: 'without-tasks' }
      const { id } = (await this.#call<{ webhook: { id: string } }>('POST', '/v1/webhooks', body)).webhook
      const insert = `insert into deliveries (id, tenant, webhook, task, type, payload, status)
                      values ($1, $2, $1, $1, 'task.created', '{}', 'failed')`
      await this.owner.pg.query(insert, [id, this.owner.tenant])
      return id
    })
  }

  /** A customer with one value, `note`. */
  customer(): Promise<string> {
    return this.#once('customer', async () => {
      const customer = randomUUID()
      await this.#call('PUT', `/v1/store/customer:${customer}/note`, { value: { mark } })
      return customer
    })
  }

  key(): Promise<string> {
    return this.#once('key', async () => {
      const { key } = await this.#call<{ key: { id: string } }>('POST', '/v1/keys', { name: mark, scopes: ['tasks:read'] })
      return key.id
    })
  }

  /** A call of MCP in a session of its client, whose turn asks for an approval. The client may cancel it by the session and the id, which is 1. */
  async mcpSession(): Promise<string> {
    const { session } = await this.#once('mcp call', async () => {
      const [session, name] = [randomUUID(), `${mark}-${randomUUID()}`]
      const params = { steps: [{ ask: { name: 'go', title: mark, holdMs: 0 } }] }
      const call = { name: 'scripted', arguments: { message: mark, task: name, params } }
      const headers = { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }
      await this.#call('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }, headers)
      const { data } = await this.#call<{ data: { id: string }[] }>('GET', `/v1/tasks?name=${name}`)
      if (!data[0]) throw new Error('The call of MCP created no task')
      return { session, task: data[0].id }
    })
    return session
  }

  /** Settings of two agents, and an entry of the audit log. Returns the agent that is the owner's tenant's alone, which has no worker. */
  settings(): Promise<string> {
    return this.#once('settings', async () => {
      const idleAgent = `${mark}-${randomUUID()}`
      const agent = `insert into agents (name, description, tenant) values ($1, $2, $3)`
      await this.owner.pg.query(agent, [idleAgent, mark, this.owner.tenant])
      for (const name of ['scripted', idleAgent]) await this.#call('PUT', `/v1/limits/${name}`, { perKey: 31_337 })
      const { id } = await this.asking()
      await this.#call('POST', `/v1/tasks/${id}/tokens`, { can: 'read', subject: mark })
      return idleAgent
    })
  }

  /** The id of the first item of a response that OpenAI's clients get. */
  async openAiItem(): Promise<string> {
    const { id } = await this.ended()
    const { output } = await this.#call<{ output: { id: string }[] }>('GET', `/openai/v1/responses/${id}.1.1`)
    return output[0]?.id ?? ''
  }

  async token(task: string, can: readonly TokenRight[]): Promise<string> {
    return (await this.#call<{ token: string }>('POST', `/v1/tasks/${task}/tokens`, { can })).token
  }

  /** For each table, a digest of the rows that name something of this: equal as long as nothing of it changes. Another tenant may use the same names. */
  async digests(otherTenant: string): Promise<Record<string, string>> {
    const parts = await Promise.all(this.#parts.values())
    const ids = JSON.stringify(parts).match(/[\da-f]{8}-[\da-f-]{27}|(?<=")[\da-f]{16}(?=")/g) ?? []
    const { rows } = await this.owner.pg.query(await this.#digestsQuery(), [[...new Set(ids)].join('|'), `%,${otherTenant},%`])
    return Object.fromEntries(rows.flatMap(({ name, digest }) => (digest ? [[name, digest]] : [])))
  }

  /** One statement for all tables, because tests ask for it around hundreds of calls. */
  #digestsQuery(): Promise<string> {
    this.#query ??= this.owner.pg.query("select tablename as name from pg_tables where schemaname = 'public'").then(({ rows: tables }) =>
      tables
        // Reads and refusals have entries in the audit log, and a response that is kept for a repetition is the caller's.
        .filter(({ name }) => !['audit', 'idempotency_keys'].includes(name))
        .map(
          ({ name }) =>
            `select '${name}' as name, md5(string_agg(own::text, ' ' order by own::text)) as digest from ${name} as own where own::text ~ $1 and ',' || translate(own::text, '()', ',,') not like $2`,
        )
        .join(' union all '),
    )
    return this.#query
  }

  async #newTask(): Promise<OwnedTask> {
    const [file, name] = [await this.#newFile(), `thread-${randomUUID()}`]
    const steps = [
      { full: { index: 0, content: { type: 'text', text: mark } } },
      { state: { value: mark } },
      { ask: { name: 'go', title: mark, holdMs: 0 } },
    ]
    const input = [
      { type: 'text', text: mark },
      { type: 'media', mimeType: 'text/plain', file },
    ]
    const body = { agent: 'scripted', input, params: { steps }, metadata: { mark }, name }
    const { task, turn } = await this.#call<{ task: { id: string }; turn: { id: string } }>('POST', '/v1/tasks', body)
    const wait = await until('the turn asks and has left its worker', async () => {
      const { turns } = await this.#call<{ turns: { status: string; waits?: { id: string }[] }[] }>('GET', `/v1/tasks/${task.id}`)
      return turns[0]?.status === 'waiting' && turns[0].waits?.[0]?.id
    })
    return { id: task.id, name, turn: turn.id, wait, file }
  }

  async #newFile(headers: Record<string, string> = {}): Promise<string> {
    const { file } = await this.#call<{ file: { id: string } }>('POST', '/v1/files', mark, headers)
    return file.id
  }

  async #call<T>(method: string, path: string, body?: unknown, more: Record<string, string> = {}): Promise<T> {
    const json = body !== undefined && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const headers = { ...(json ? json.headers : {}), ...more, authorization: `Bearer ${this.owner.key}` }
    const reply: Reply<T> = await createClient(() => this.owner.url).send<T>(method, path, { ...json, headers })
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply.body
  }

  #once<T>(name: string, create: () => Promise<T>): Promise<T> {
    const part = (this.#parts.get(name) as Promise<T> | undefined) ?? create()
    this.#parts.set(name, part)
    return part
  }
}
