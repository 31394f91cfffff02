/**
 * Every route of the running API, called by every caller that may not: another tenant, no key, every kind of wrong key, every missing scope, the token
 * of another task, the token without the right, the key that is limited to another agent. The routes are those that the API says it has; one without a row here fails.
 */
import { randomUUID } from 'node:crypto'
import type { AuditEntry } from '@rivulet/contract/audit'
import { callOf, routes } from '@rivulet/contract/routes'
import type { AuditAction, Scope, TokenRight } from '@rivulet/contract/scopes'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorCodeOf, readDocumentedErrors } from '../support/calls/documented-errors.ts'
import { openTestKeyring, pepper, type TestKey, type TestKeyring } from '../support/platform/keyring.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { createClient } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

const root = 'the-root-key-of-this-test'
const secrets = { KEY_PEPPER: pepper, SECRETS_KEY: 'the-key-for-secrets-of-this-test' }
const env = { RIVULET_KEY: root, RIVULET_WORKER_KEY: 'the-worker-key-of-this-test', ...secrets, LOG_LEVEL: 'trace' }

/** How a call is made here, beside its row of the contract. */
type Sample = {
  body?: unknown
  headers?: Record<string, string>
  /** Its response has what the agent says, so the caller needs the right to read, too. */
  reads?: true
  /** What the right caller gets, if it is not the first status of the row. */
  status?: number
}

const turnId = randomUUID()
const holding = { turnId, epoch: 1, claimId: 'c' }
const held = { turn: turnId, claim: 'c', epoch: 1 }
const claimHeaders = { 'x-turn-id': turnId, 'x-claim-id': 'c' }
const wanted = { name: 'one', kind: 'approval', title: 'May I?', actions: ['accept'], metadata: {}, expires: { inMs: 1_000 } }
const wantedChild = { name: 'one', agent: 'echo', detached: false, onParentEnd: 'cancel' }
/** An agent of `acme` alone, without a worker. */
const idle = 'idle'
const hook = { url: 'https://example.com/hook', events: ['turn.finished'], agent: 'echo' }
const greeting = { role: 'user', content: 'hi' }
const chat = { model: 'echo', messages: [greeting] }
const run = { threadId: 'a-thread', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'hi' }], tools: [], context: [] }
const message = messageOf('m')
const rpc = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: message }
const samples: Record<string, Sample> = {
  'POST /openai/v1/responses': { body: { model: 'echo', input: 'hello', background: true } },
  'POST /openai/v1/responses/{id}/cancel': { body: {} },
  'POST /openai/v1/chat/completions': { body: chat, reads: true },
  'POST /openai/v1/conversations': { body: { items: [greeting] } },
  'POST /openai/v1/conversations/{id}': { body: { metadata: { a: 'b' } } },
  'POST /openai/v1/conversations/{id}/items': { body: { items: [greeting] } },
  'POST /openai/v1/files': { body: formOf('bytes') },
  'POST /ag-ui/{agent}': { body: run, reads: true },
  'POST /ag-ui/{agent}/threads/{thread}/cancel': { body: {} },
  'GET /.well-known/agent-card.json': { status: 404 },
  'POST /a2a/{agent}': { body: rpc, reads: true },
  'POST /a2a/{agent}/message:send': { body: messageOf('n'), reads: true },
  'POST /a2a/{agent}/message:stream': { body: messageOf('o'), reads: true },
  'POST /a2a/{agent}/tasks/{task}': { body: {} },
  'POST /mcp': { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' }, reads: true },
  'PATCH /v1/agents/{name}': { body: { paused: false } },
  'PUT /v1/limits/{agent}': { body: { perKey: 1_000 } },
  'POST /v1/tasks': { body: { agent: 'echo', input: 'hello' }, status: 201 },
  'POST /v1/tasks/{id}/turns': { body: { input: 'more' }, status: 202 },
  'POST /v1/tasks/{id}/fork': { body: {} },
  'POST /v1/tasks/{id}/cancel': { body: {} },
  'POST /v1/tasks/{id}/tokens': { body: { can: 'read' } },
  'POST /v1/tasks/{id}/waits/{wait}/answer': { body: { action: 'accept' } },
  'POST /v1/tasks/{id}/signals': { body: { name: 'paid', data: 1 } },
  'PATCH /v1/tasks/{id}': { body: { metadata: { a: 1 } } },
  'PUT /v1/tasks/{id}/state': { body: { value: 1 }, headers: { 'if-match': '*' } },
  'POST /v1/tasks/{id}/retry': { body: {} },
  'POST /v1/events': { body: { tasks: { '{id}': null } } },
  'PUT /v1/store/{scope}/{key}': { body: { value: 1 }, status: 201 },
  'PATCH /v1/store/{scope}/{key}': { body: { value: { a: 1 } } },
  'POST /v1/schedules': { body: { agent: 'echo', cron: '0 0 1 1 *', input: 'hello' } },
  'POST /v1/files': { body: 'bytes' },
  'POST /v1/webhooks': { body: hook },
  'PATCH /v1/webhooks/{id}': { body: { status: 'disabled' } },
  'POST /v1/keys': { body: { name: 'made' } },
  'POST /v1/keys/{id}/rotate': { body: {} },
  'POST /internal/hello': { body: { worker: 'w', agents: [] } },
  'POST /internal/claim': { body: { worker: 'w', turnId, claimId: 'c' } },
  'POST /internal/heartbeat': { body: { worker: 'w', turns: [] } },
  'POST /internal/append': { body: { appends: [{ ...holding, first: 1, entries: '' }] } },
  'POST /internal/next': { body: { agents: ['never-seen'], waitMs: 0 }, status: 422 },
  'POST /internal/hints': { body: { worker: 'w', waitMs: 0 } },
  'POST /internal/reopen': { body: holding },
  'POST /internal/usage': { body: { turnId, claimId: 'c', records: [{ id: 'a', usage: {} }] } },
  'POST /internal/step': { body: { turnId, claimId: 'c', name: 'one', memory: '{}' } },
  'POST /internal/store': { body: { turnId, claimId: 'c', call: { action: 'get', scope: 'agent', key: 'k' } }, status: 404 },
  'POST /internal/release': { body: holding },
  'POST /internal/finish': { body: { ...holding, outcome: { status: 'completed' }, n: 0, digest: '' } },
  'POST /internal/ask': { body: { turnId, claimId: 'c', waits: [wanted] } },
  'POST /internal/spawn': { body: { turnId, claimId: 'c', children: [wantedChild] } },
  'POST /internal/child': { body: { turnId, claimId: 'c', name: 'one' }, status: 404 },
  'POST /internal/waits': { body: { turnId, claimId: 'c' } },
  'POST /internal/take': { body: { turnId, claimId: 'c', after: 0, maxBytes: 1_000 } },
  'POST /internal/park': { body: { ...holding, n: 0, digest: '' } },
  'POST /internal/file': { body: { turnId, claimId: 'c', file: randomUUID() }, status: 404 },
  'POST /internal/files': { body: 'bytes', status: 404 },
  'POST /internal/messages': { body: { turnId, claimId: 'c' }, status: 404 },
  'POST /worker/v1/hello': { body: { protocol: 1, worker: 'v1', agents: [] } },
  'POST /worker/v1/claim': { body: { worker: 'v1', agents: ['never-seen'] }, status: 422 },
  'POST /worker/v1/append': { body: { appends: [{ ...held, first: 1, updates: [] }] } },
  'POST /worker/v1/heartbeat': { body: { worker: 'v1', turns: [held] } },
  'POST /worker/v1/step': { body: { turn: turnId, claim: 'c', name: 'one' } },
  'POST /worker/v1/usage': { body: { turn: turnId, claim: 'c', records: [{ id: 'a', usage: {} }] } },
  'POST /worker/v1/take': { body: { ...held, after: 0 } },
  'POST /worker/v1/ask': { body: { ...held, waits: [wanted] } },
  'POST /worker/v1/store': { body: { turn: turnId, claim: 'c', call: { action: 'get', scope: 'agent', key: 'k' } }, status: 404 },
  'POST /worker/v1/spawn': { body: { turn: turnId, claim: 'c', children: [wantedChild] } },
  'POST /worker/v1/park': { body: { ...held, last: 0 } },
  'POST /worker/v1/release': { body: held },
  'POST /worker/v1/finish': { body: { ...held, last: 0, status: 'completed' } },
  'GET /worker/v1/waits': { headers: claimHeaders, status: 404 },
  'GET /worker/v1/history': { headers: claimHeaders, status: 404 },
  'GET /worker/v1/files/{id}': { headers: claimHeaders, status: 404 },
  'POST /worker/v1/files': { headers: claimHeaders, body: 'bytes', status: 404 },
}

const rows = Object.fromEntries(
  Array.from(routes.values(), row => {
    const [first = ''] = Object.keys(row.returns)
    const { status = Number(first), ...sample } = samples[callOf(row)] ?? {}
    return [
      callOf(row),
      { scope: row.scope, rights: [row.token ?? []].flat(), also: [row.tokenAlso ?? []].flat(), audited: row.audited, status, ...sample },
    ]
  }),
)

function formOf(text: string): FormData {
  const form = new FormData()
  form.set('file', new File([text], 'bytes.txt'))
  return form
}

function messageOf(messageId: string) {
  return { message: { messageId, role: 'ROLE_USER', parts: [{ text: 'hi' }] } }
}

const allScopes: Scope[] = ['tasks:read', 'tasks:write', 'admin', 'metrics', 'worker']
const rights: TokenRight[] = ['read', 'send', 'cancel', 'answer', 'params', 'rewind']

let platform: Platform
let documented: ReadonlyMap<string, readonly string[]>
let keyring: TestKeyring
let own: TestKey
let other: TestKey
/** One for each scope, of the same tenant as `own`. */
const narrow = new Map<Scope, TestKey>()
/** Of the same tenant, and limited: to the agents that the routes here are called about, to another one, and with rights that such a key cannot get. */
let within: TestKey
let strange: TestKey
let strangeAdmin: TestKey
/** Tasks that no test changes: for calls that read, and for calls that are refused. */
let kept: string
let alsoKept: string
let keptOfRoot: string
/** Texts that are no key, each in its own way. */
let wrongKeys: [what: string, text: string][]

beforeAll(async () => {
  platform = await startPlatform({ env })
  documented = await readDocumentedErrors(platform.url)
  keyring = openTestKeyring(platform.databaseUrl)
  own = await makeKey('acme', ['tasks:read', 'tasks:write'])
  other = await makeKey('rival', ['tasks:read', 'tasks:write', 'admin', 'worker'])
  for (const scope of allScopes) narrow.set(scope, await makeKey('acme', [scope]))
  const taskScopes: Scope[] = ['tasks:read', 'tasks:write']
  within = await keyring.create({ tenant: 'acme', scopes: taskScopes, agents: ['echo', idle] })
  strange = await keyring.create({ tenant: 'acme', scopes: taskScopes, agents: ['scripted'] })
  strangeAdmin = await keyring.create({ tenant: 'acme', scopes: ['admin'], agents: ['scripted'] })
  const revoked = await makeKey('acme', allScopes)
  await keyring.revoke(revoked.id)
  const expired = await makeKey('acme', allScopes, -1)
  wrongKeys = [
    ['nonsense', 'nonsense'],
    ['an unknown id', `rvk_${'0'.repeat(16)}_${'A'.repeat(43)}`],
    ['another secret', `rvk_${own.id}_${'A'.repeat(43)}`],
    ['a revoked key', revoked.key],
    ['an expired key', expired.key],
    ['a forged token', `rvt_${Buffer.from('{}').toString('base64url')}.${'A'.repeat(43)}`],
  ]
  ;[kept, alsoKept, keptOfRoot] = await Promise.all([newTask(), newTask(), newTask(root)])
})
afterAll(async () => {
  await keyring.close()
  await platform.close()
})

function makeKey(tenant: string, scopes: Scope[], expiresInSeconds?: number): Promise<TestKey> {
  return keyring.create({ tenant, scopes, expiresInSeconds })
}

type Reply = { status: number; headers: Record<string, string>; body: string }

/** `{id}` in a path or a body is the id. Random values are removed, so that two equal responses compare equal. */
async function ask(route: string, { id = '', key, body, query = '', url = platform.url, agent = 'echo' }: AskOptions = {}): Promise<Reply> {
  const [method = '', path = ''] = route.split(' ')
  const leaving = new AbortController()
  const places = {
    '{id}': id,
    '{number}': '1',
    '{index}': '0',
    '{delivery}': id,
    '{wait}': id,
    '{model}': 'echo',
    '{item}': `msg_${id}.0.0`,
    '{thread}': id,
    '{task}': method === 'POST' ? `${id}:cancel` : id,
    '{scope}': `agent:${agent}`,
    '{key}': id,
    '{name}': idle,
    '{agent}': agent,
  }
  const filled = Object.entries(places).reduce((text, [place, value]) => text.replace(place, value), path)
  const response = await fetch(`${url}${filled}${query}`, {
    method,
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && !(body instanceof FormData) && { 'content-type': 'application/json' }),
      ...rows[route]?.headers,
    },
    ...(body !== undefined && { body: body instanceof FormData ? body : JSON.stringify(body).replaceAll('{id}', id) }),
    signal: leaving.signal,
  })
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') && response.ok
  const text = isStream ? '' : await response.text()
  leaving.abort()
  const errors = documented.get(route)
  if (errors && response.status >= 400) expect(errors, `${route} ${response.status}`).toContain(errorCodeOf(text))
  const { date: _, 'x-request-id': _id, ...headers } = Object.fromEntries(response.headers)
  return { status: response.status, headers, body: text.replace(/"requestId":"[^"]+"/, '"requestId":""') }
}

type AskOptions = { id?: string; key?: string | undefined; body?: unknown; query?: string; url?: string; agent?: string }

async function newTask(key = own.key): Promise<string> {
  const { body } = await ask('POST /v1/tasks', { key, body: { agent: 'echo', input: 'hello' }, query: '?wait=60s' })
  const { task, turn } = JSON.parse(body)
  expect(turn.status).toBe('completed')
  await addWait(task.id)
  return task.id
}

/** Without a response: its items may still change. */
async function newConversation(key = own.key): Promise<string> {
  const body = { agent: 'echo', start: false, history: [{ author: 'user', content: { type: 'text', text: 'hi' } }] }
  return JSON.parse((await ask('POST /v1/tasks', { key, body })).body).task.id
}

/** A task whose turn can be canceled. */
async function waitingTask(key = own.key): Promise<string> {
  const { body } = await ask('POST /v1/tasks', { key, body: { agent: 'echo', input: 'hello', delayMs: 600_000 } })
  return JSON.parse(body).task.id
}

/** A key of the store, which has a value unless the route is to store the first one. */
async function newStored(route: string, key = own.key): Promise<string> {
  const id = randomUUID()
  if (!route.startsWith('PUT')) await ask('PUT /v1/store/{scope}/{key}', { id, key, body: { value: {} } })
  return id
}

async function newSchedule(key = own.key): Promise<string> {
  const body = { agent: 'echo', cron: '0 0 1 1 *', input: 'hello' }
  return JSON.parse((await ask('POST /v1/schedules', { key, body })).body).schedule.id
}

async function newWebhook(key = own.key): Promise<string> {
  const body = { url: 'https://example.com/hook', events: ['task.created'], agent: 'echo' }
  const { id } = JSON.parse((await ask('POST /v1/webhooks', { key, body })).body).webhook
  const tenant = key === root ? 'default' : 'acme'
  // A delivery under the same id, so that each route finds what it is about.
  const delivery = `insert into deliveries (id, tenant, webhook, task, type, payload, status) values ($1, $2, $1, $1, 'task.created', '{}', 'failed')`
  await platform.pg.query(delivery, [id, tenant])
  return id
}

/** An open wait, whose id is that of its task. */
async function addWait(id: string): Promise<void> {
  await platform.pg.query(
    `insert into waits (id, task, tenant, turn, number, agent, name, kind, request, metadata, status, expires_at)
     select task, task, tenant, id, number, 'echo', 'one', 'approval', $2, '{}', 'open', now() + interval '1 hour' from turns where task = $1`,
    [id, JSON.stringify({ title: 'May I?', actions: ['accept'] })],
  )
}

/** A token of a task that no test changes: one for all tests. */
function keptToken(id: string, can: TokenRight[]): Promise<string> {
  const name = [id, ...can].join(' ')
  const token = keptTokens.get(name) ?? tokenFor(id, can, 3_600)
  keptTokens.set(name, token)
  return token
}

const keptTokens = new Map<string, Promise<string>>()

/** A task that the route may be called for. A new one is a whole turn, so a route that only reads, or is about no task, shares one. */
async function taskFor(route: string, key?: string): Promise<string> {
  if (/^(?!GET ).*\{(id|thread)\}/.test(route)) return newTask(key)
  return key === root ? keptOfRoot : kept
}

/** Of what the route is about, which the holder of the key may change. */
async function idFor(route: string, key?: string): Promise<string> {
  if (route.includes('/agents/{name}') || route.includes('/limits/{agent}')) await addAgents(key === root ? 'default' : 'acme')
  if (route.includes('/responses/')) return `${await taskFor(route, key)}.1.1`
  if (route.includes('/conversations/')) return newConversation(key)
  if (route.includes('{thread}')) return taskFor(route, key)
  if (route.includes('{task}')) return turnOf(await (route.startsWith('POST') ? waitingTask(key) : taskFor(route, key)))
  if (route.includes('/keys/')) return (await makeKey('acme', ['tasks:read'])).id
  if (route.includes('/schedules/')) return newSchedule(key)
  if (route.includes('/files/')) return newFile(key)
  if (route.includes('/store/')) return newStored(route, key)
  return route.includes('/webhooks/') ? newWebhook(key) : taskFor(route, key)
}

/** A task whose turn asks for an approval. */
async function askingTask(): Promise<string> {
  const params = { steps: [{ ask: { name: 'go', title: 'May I?', holdMs: 0 } }] }
  const { task } = JSON.parse((await ask('POST /v1/tasks', { key: own.key, body: { agent: 'scripted', params } })).body)
  await until('the turn asks', async () => {
    const { data } = JSON.parse((await ask('GET /v1/waits', { key: own.key, query: `?task=${task.id}` })).body)
    return data.length > 0
  })
  return task.id
}

/** The same, where the call changes something only while a turn has not ended. */
async function idToChange(route: string): Promise<string> {
  if (!route.endsWith('/cancel')) return idFor(route)
  const task = await waitingTask()
  return route.includes('/responses/') ? `${task}.1.1` : task
}

async function turnOf(task: string): Promise<string> {
  const { rows: turns } = await platform.pg.query('select id from turns where task = $1', [task])
  return turns[0]?.id
}

/** An agent and limits of a tenant, which the routes about them can find. */
async function addAgents(tenant: string): Promise<void> {
  const agent = `insert into agents (name, description, tenant) values ('${idle}', '', $1) on conflict (name) do update set tenant = $1`
  await platform.pg.query(agent, [tenant])
  await platform.pg.query(`insert into limits (tenant, agent, per_key) values ($1, 'echo', 1000) on conflict do nothing`, [tenant])
}

async function newFile(key = own.key): Promise<string> {
  const { status, body } = await ask('POST /v1/files', { key, body: 'bytes' })
  expect([status, body]).toEqual([201, expect.stringContaining('"sha256"')])
  return JSON.parse(body).file.id
}

/** A file that a task of `echo` refers to. */
async function usedFile(): Promise<string> {
  const file = await newFile()
  const body = { agent: 'echo', input: { type: 'media', mimeType: 'text/plain', file } }
  expect((await ask('POST /v1/tasks', { key: own.key, body })).status).toBe(201)
  return file
}

async function tokenFor(id: string, can: TokenRight[], ttlSeconds = 60, key = own.key): Promise<string> {
  const { status, body } = await ask('POST /v1/tasks/{id}/tokens', { id, key, body: { can, ttlSeconds } })
  expect([status, body]).toEqual([201, expect.stringContaining('rvt_')])
  return JSON.parse(body).token
}

const codeOf = ({ status, body }: Reply) => [status, errorCodeOf(body)]

test('every sample is of a route', () => {
  expect(Object.keys(samples).filter(call => !(call in rows))).toEqual([])
})

const guarded = Object.entries(rows).filter(([, { scope }]) => scope !== null)
const ofOneTask = guarded.filter(([route]) => route.includes('/tasks/{id}'))
/** A token has a task, and these routes are not about one: see below. */
const isOfFiles = (route: string) => route.includes('/files')
const ofOneWebhook = guarded.filter(([route]) => route.includes('/webhooks/{id}'))
const ofOneSchedule = guarded.filter(([route]) => route.includes('/schedules/{id}'))
const ofOneKey = guarded.filter(([route]) => route.includes('/keys/{id}'))

/** Who may call a route. */
function describeCallers(route: string, { scope, rights: enough, also, body, reads, status }: (typeof rows)[string]): void {
  const [token] = enough
  const holders = allScopes.filter(held => held === scope || (held === 'admin' && scope !== 'worker'))

  test('rejects a missing key and every kind of wrong key with the same response', async () => {
    const id = kept
    const missing = await ask(route, { id, body })
    expect([...codeOf(missing), missing.headers['www-authenticate']]).toEqual([401, 'unauthorized', 'Bearer'])
    const queries = [`?key=${own.key}`, `?token=${own.key}`, `?token=${wrongKeys.at(-1)?.[1]}`, `?token=${root}`]
    await Promise.all([
      ...wrongKeys.map(async ([what, key]) => expect([what, await ask(route, { id, body, key })]).toEqual([what, missing])),
      ...queries.map(async query => expect([query, await ask(route, { id, body, query })]).toEqual([query, missing])),
    ])
    expect((await ask(route.replace('GET', 'HEAD'), { id, body })).status).toBeGreaterThanOrEqual(401)
  })

  test('refuses a key that lacks the scope', async () => {
    for (const held of allScopes.filter(one => !holders.includes(one))) {
      expect([held, codeOf(await ask(route, { id: kept, body, key: narrow.get(held)?.key }))]).toEqual([held, [403, 'forbidden']])
    }
  })

  test.skipIf(isOfFiles(route) && token)(
    token ? `takes a token of its task that may ${token}, and no other` : 'takes no token',
    async () => {
      for (const right of rights.filter(one => !enough.includes(one))) {
        expect([right, codeOf(await ask(route, { id: kept, body, key: await keptToken(kept, [right]) }))]).toEqual([
          right,
          [403, 'forbidden'],
        ])
      }
      const foreign = await keptToken(alsoKept, rights)
      const elsewhere = await ask(route, { id: kept, body, key: foreign })
      expect(codeOf(elsewhere)).toEqual([403, 'forbidden'])
      expect(await ask(route, { id: randomUUID(), body, key: foreign })).toEqual(elsewhere)
      const id = token ? await taskFor(route) : kept
      const itself = await ask(route, { id, body, key: await tokenFor(id, token ? [token, ...also] : rights) })
      expect(itself.status).toBe(token ? status : 403)
    },
  )

  test('serves an allowed caller', async () => {
    for (const held of holders) {
      expect([held, (await ask(route, { id: await idFor(route), body, key: reads ? own.key : narrow.get(held)?.key })).status]).toEqual([
        held,
        status,
      ])
    }
    // The id of a worker belongs to the key that has used it first.
    const ofRoot = route.endsWith('/hello') ? { ...(body as object), worker: 'of the root key' } : body
    expect((await ask(route, { id: await idFor(route, root), body: ofRoot, key: root })).status).toBe(status)
  })

  test.skipIf(scope === 'worker')('shows a key that is limited to another agent nothing of this one', async () => {
    const id = isOfFiles(route) && !route.startsWith('POST') ? await usedFile() : await idFor(route)
    await addAgents('acme')
    if (scope === 'admin' || scope === 'metrics') {
      expect(codeOf(await ask(route, { id, body, key: strangeAdmin.key }))).toEqual([403, 'forbidden'])
      return
    }
    const reply = await ask(route, { id, body, key: strange.key })
    const isRejected = (reply.status >= 400 && reply.status < 500) || reply.body.startsWith('{"jsonrpc":"2.0","id":1,"error":')
    // The host has a card for each key that is limited to one agent.
    const isAllowed = reply.status === (route === 'GET /.well-known/agent-card.json' ? 200 : status)
    // What it creates is about no agent, or about its own.
    const isList = isAllowed && !route.includes('{') && (scope === 'tasks:read' || /files|mcp|conversations/.test(route))
    expect([reply.status, isRejected || isList]).toEqual([reply.status, true])
    // A rejection may repeat the id that the caller sent.
    expect(reply.body).not.toMatch(isRejected ? /echo|idle/ : RegExp(`echo|idle|${id}`))
    expect(reply.headers['content-type']).toContain('json')
  })

  test.skipIf(scope === 'worker' || scope === 'admin' || scope === 'metrics')('serves a key that is limited to this agent', async () => {
    expect((await ask(route, { id: await idFor(route), body, key: within.key })).status).toBe(status)
  })
}

describe.each(guarded)('%s', describeCallers)

describe.each(ofOneTask)('%s', (route, { body, rights: [token], also, status }) => {
  test('means the same task by capitals, for a key and for a token, and takes no other spelling', async () => {
    for (const key of token ? [own.key, null] : [own.key]) {
      const id = await taskFor(route)
      const held = key ?? (await tokenFor(id, [token ?? 'read', ...also]))
      for (const spelling of [`{${id}}`, id.replaceAll('-', '')])
        expect([spelling, (await ask(route, { id: spelling, body, key: held })).status]).toEqual([spelling, key ? 400 : 403])
      expect((await ask(route, { id: id.toUpperCase(), body, key: held })).status).toBe(status)
    }
  })

  test('responds to another tenant as if the task did not exist', async () => {
    const id = kept
    const unknown = await ask(route, { id: randomUUID(), body, key: other.key })
    expect(codeOf(unknown)).toEqual([404, 'task_not_found'])
    expect(await ask(route, { id, body, key: other.key })).toEqual(unknown)
    expect(await ask(route, { id, body, key: strange.key })).toEqual(await ask(route, { id: randomUUID(), body, key: strange.key }))
    expect((await ask('GET /v1/tasks/{id}', { id, key: own.key })).status).toBe(200)
  })
})

describe('a key that is limited to an agent', () => {
  test('lists, follows and counts what this agent has, and nothing else', async () => {
    const { body: made } = await ask('POST /v1/tasks', { key: strange.key, body: { agent: 'scripted', params: { steps: [] } } })
    const mine = JSON.parse(made).task.id
    const [theirs, turn] = [await newTask(), randomUUID()]
    const used = `insert into usage (turn, id, tenant, task, root, agent, attempt, usage, tokens) values ($1, $2, 'acme', $1, $1, $2, 1, '{}', 7)`
    for (const agent of ['echo', 'scripted']) await platform.pg.query(used, [turn, agent])
    for (const [route, query] of [
      ['GET /v1/tasks', ''],
      ['GET /v1/tasks', '?view=summary'],
      ['GET /v1/feed', ''],
    ] as const)
      await until(`${route}${query} has the task`, async () => {
        const { body: page } = await ask(route, { key: strange.key, query })
        expect(page).not.toContain(theirs)
        return page.includes(mine)
      })
    const read = async (route: string, key: string, query = '') => JSON.parse((await ask(route, { key, query })).body)
    expect((await read('GET /v1/agents', strange.key)).data.map(({ name }: { name: string }) => name)).toEqual(['scripted'])
    expect((await read('GET /openai/v1/models', strange.key)).data.map(({ id }: { id: string }) => id)).toEqual(['scripted'])
    expect((await read('GET /v1/whoami', strange.key)).caller.agents).toEqual(['scripted'])
    for (const by of ['agent', 'model', 'day']) expect((await read('GET /v1/usage', strange.key, `?by=${by}`)).total.tokens).toBe(7)
    await platform.pg.query('delete from usage where turn = $1', [turn])
    const [limited, whole] = [await read('GET /v1/agents/activity', within.key), await read('GET /v1/agents/activity', own.key)]
    const completed = ({ data }: { data: { agent: string | null; completed: number }[] }) =>
      data.reduce((sum, row) => sum + (row.agent === null ? row.completed : 0), 0)
    expect([completed(limited) > 0, completed(limited) < completed(whole)]).toEqual([true, true])
  })

  test('sees no sum of files beside the limit of its tenant, whose other agents have files, too', async () => {
    expect(JSON.parse((await ask('GET /v1/usage', { key: own.key })).body)).toHaveProperty('files')
    const reply = await ask('GET /v1/usage', { key: within.key })
    expect([reply.status, Object.keys(JSON.parse(reply.body))]).toEqual([200, expect.not.arrayContaining(['files'])])
  })

  test('follows the feed of this agent alone, also where it goes on', async () => {
    const leaving = new AbortController()
    const headers = { authorization: `Bearer ${strange.key}`, accept: 'text/event-stream' }
    const response = await fetch(`${platform.url}/v1/feed`, { headers, signal: leaving.signal })
    const theirs = await newTask()
    const { body: made } = await ask('POST /v1/tasks', { key: own.key, body: { agent: 'scripted', params: { steps: [] } } })
    let heard = ''
    for await (const bytes of response.body ?? []) {
      heard += Buffer.from(bytes).toString()
      if (heard.includes(JSON.parse(made).task.id)) break
    }
    leaving.abort()
    expect(heard).not.toContain(theirs)
  })

  test('cannot reach a task of another agent by a dialect, a file, a webhook, or a token', async () => {
    const [task, file] = [await newTask(), await usedFile()]
    const [context, next] = [{ contextId: task }, { previous_response_id: `${task}.1.1` }]
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] }
    const sent = await ask('POST /a2a/{agent}/message:send', {
      agent: 'scripted',
      key: strange.key,
      body: { message: { ...message, ...context } },
    })
    expect(codeOf(sent)).toEqual([404, 'task_not_found'])
    const continued = { model: 'scripted', input: 'more', background: true, ...next }
    expect(codeOf(await ask('POST /openai/v1/responses', { key: strange.key, body: continued }))).toEqual([404, 'task_not_found'])
    const input = { type: 'media', mimeType: 'text/plain', file }
    expect((await ask('POST /v1/tasks', { key: strange.key, body: { agent: 'scripted', input } })).status).toBe(400)
    const { agent: _, ...ofAll } = hook
    expect(codeOf(await ask('POST /v1/webhooks', { key: strange.key, body: ofAll }))).toEqual([403, 'forbidden'])
    const { body: made } = await ask('POST /v1/webhooks', { key: strange.key, body: { ...hook, agent: 'scripted' } })
    const { id } = JSON.parse(made).webhook
    for (const agent of ['echo', null])
      expect(codeOf(await ask('PATCH /v1/webhooks/{id}', { id, key: strange.key, body: { agent } }))).toEqual([403, 'forbidden'])
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { message: 'hi' } } }
    expect((await ask('POST /mcp', { key: strange.key, body: call })).body).toContain('unknown_agent')
    // A token is as limited as its key is.
    expect(codeOf(await ask('POST /v1/tasks/{id}/tokens', { id: task, key: strange.key, body: { can: 'read' } }))).toEqual([
      404,
      'task_not_found',
    ])
  })

  test('cannot have the scope admin, and its limit is kept by a rotation', async () => {
    const admin = narrow.get('admin')?.key
    const wanted = { name: 'limited', agents: ['echo'] }
    expect((await ask('POST /v1/keys', { key: admin, body: { ...wanted, scopes: ['admin'] } })).status).toBe(400)
    const { key, secret } = JSON.parse((await ask('POST /v1/keys', { key: admin, body: wanted })).body)
    expect([key.agents, key.scopes]).toEqual([['echo'], ['tasks:read', 'tasks:write']])
    const rotated = JSON.parse((await ask('POST /v1/keys/{id}/rotate', { id: key.id, key: admin, body: {} })).body)
    for (const text of [secret, rotated.secret])
      expect(codeOf(await ask('POST /v1/tasks', { key: text, body: { agent: 'scripted' } }))).toEqual([422, 'unknown_agent'])
  })
})

test('a task of MCP does not exist for another tenant', async () => {
  const [cancel, unknown] = [await turnOf(await newTask()), randomUUID()].map(taskId => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tasks/cancel',
    params: { ...spoken, taskId },
  }))
  const refused = await callMcp(unknown, other.key)
  expect(refused).toMatchObject({ error: { code: -32602 } })
  expect(await callMcp(cancel, other.key)).toEqual(refused)
  const listening = {
    ...cancel,
    method: 'subscriptions/listen',
    params: { ...spoken, notifications: { taskIds: [cancel?.params.taskId] } },
  }
  const heard = await (await postMcp(listening, other.key)).text()
  expect([heard.includes('subscriptions/acknowledged'), heard.includes(String(cancel?.params.taskId))]).toEqual([true, false])
  expect(await callMcp(cancel, own.key)).toMatchObject({ result: {} })
})

test('a task of A2A, and its context, do not exist for another tenant', async () => {
  const context = await newTask()
  const id = await turnOf(context)
  for (const route of ['GET /a2a/{agent}/tasks/{task}', 'POST /a2a/{agent}/tasks/{task}']) {
    const unknown = await ask(route, { id: randomUUID(), key: other.key })
    expect(codeOf(unknown)).toEqual([404, 'task_not_found'])
    expect(await ask(route, { id, key: other.key })).toEqual(unknown)
  }
  for (const [field, value] of [
    ['contextId', context],
    ['taskId', id],
  ] as const) {
    const [held, unknown] = [value, randomUUID()].map(one => ({ message: { ...message.message, messageId: `m ${field}`, [field]: one } }))
    const refused = await ask('POST /a2a/{agent}/message:send', { body: unknown, key: other.key })
    expect([field, codeOf(refused)]).toEqual([field, [404, 'task_not_found']])
    expect([field, await ask('POST /a2a/{agent}/message:send', { body: held, key: other.key })]).toEqual([field, refused])
    const legacy = { ...rpc, method: 'message/send', params: held }
    expect((await ask('POST /a2a/{agent}', { body: legacy, key: other.key })).body).toContain('No such task')
  }
  expect((await ask('GET /a2a/{agent}/tasks/{task}', { id, key: own.key })).status).toBe(200)
  const [mine, theirs] = await Promise.all([own, other].map(({ key }) => ask('GET /a2a/{agent}/tasks', { key })))
  expect([mine?.body.includes(id), theirs?.body.includes(id)]).toEqual([true, false])
})

const version = '2026-07-28'
const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
const spoken = {
  _meta: { 'io.modelcontextprotocol/protocolVersion': version, 'io.modelcontextprotocol/clientCapabilities': capabilities },
}

type McpRequest = { method: string; params: Record<string, unknown> & { taskId?: string } }

async function callMcp(body: McpRequest | undefined, key: string): Promise<unknown> {
  return (await postMcp(body, key)).json()
}

function postMcp(body: McpRequest | undefined, key: string): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'mcp-protocol-version': version }
  const named = { 'mcp-method': body?.method ?? '', 'mcp-name': body?.params.taskId ?? '' }
  return fetch(`${platform.url}/mcp`, { method: 'POST', headers: { ...headers, ...named }, body: JSON.stringify(body) })
}

describe.each(guarded.filter(([route]) => route.includes('{thread}')))('%s', (route, { body }) => {
  test('responds to another tenant as if the thread did not exist', async () => {
    const id = await newTask()
    const unknown = await ask(route, { id: randomUUID(), body, key: other.key })
    expect(codeOf(unknown)).toEqual([404, 'task_not_found'])
    expect(await ask(route, { id, body, key: other.key })).toEqual(unknown)
    // For the other tenant, the same id is the name of a thread of its own.
    expect((await ask('POST /ag-ui/{agent}', { body: { ...run, threadId: id }, key: other.key })).status).toBe(200)
    const messages = await ask('GET /v1/tasks/{id}/messages', { id, key: own.key })
    expect(messages.body).not.toContain('ag-ui')
  })
})

describe.each(guarded.filter(([route]) => route.includes('/conversations/{id}')))('%s', (route, { body }) => {
  test('responds to another tenant as if the conversation did not exist', async () => {
    const id = await newConversation()
    const unknown = await ask(route, { id: randomUUID(), body, key: other.key })
    expect(codeOf(unknown)).toEqual([404, route === 'GET /openai/v1/conversations/{id}/items/{item}' ? 'not_found' : 'task_not_found'])
    expect(await ask(route, { id, body, key: other.key })).toEqual(unknown)
    expect((await ask('GET /openai/v1/conversations/{id}', { id, key: own.key })).status).toBe(200)
    const next = { model: 'echo', input: 'more', background: true, conversation: id }
    expect(codeOf(await ask('POST /openai/v1/responses', { body: next, key: other.key }))).toEqual([404, 'task_not_found'])
    expect(codeOf(await ask('POST /openai/v1/responses', { body: next, key: strange.key }))).toEqual([404, 'model_not_found'])
  })
})

describe.each(guarded.filter(([route]) => route.includes('/responses/{id}')))('%s', (route, { body }) => {
  test('responds to another tenant as if the response did not exist', async () => {
    const id = `${kept}.1.1`
    const unknown = await ask(route, { id: `${randomUUID()}.1.1`, body, key: other.key })
    expect(codeOf(unknown)).toEqual([404, 'task_not_found'])
    expect(await ask(route, { id, body, key: other.key })).toEqual(unknown)
    expect((await ask('GET /openai/v1/responses/{id}', { id, key: own.key })).status).toBe(200)
    const next = { model: 'echo', input: 'more', background: true, previous_response_id: id }
    expect(codeOf(await ask('POST /openai/v1/responses', { body: next, key: other.key }))).toEqual([404, 'task_not_found'])
  })
})

test('the usage of one tenant is in no report of another, and only the root key sees all of them', async () => {
  const [mine, theirs] = [randomUUID(), randomUUID()]
  const add = `insert into usage (turn, id, tenant, task, root, agent, attempt, usage, tokens) values ($1, 'a', $2, $1, $1, 'echo', 1, '{}', $3)`
  await platform.pg.query(add, [mine, 'acme', 5])
  await platform.pg.query(add, [theirs, 'rival', 7])
  const report = async (query: string, key: string) => JSON.parse((await ask('GET /v1/usage', { key, query: `?${query}` })).body)
  expect((await report('by=agent', own.key)).data).toMatchObject([{ group: 'echo', tokens: 5 }])
  expect((await report('by=agent', other.key)).data).toMatchObject([{ group: 'echo', tokens: 7 }])
  expect(codeOf(await ask('GET /v1/usage', { key: own.key, query: '?by=tenant' }))).toEqual([403, 'forbidden'])
  expect((await report('by=tenant', root)).data).toMatchObject([
    { group: 'rival', tokens: 7 },
    { group: 'acme', tokens: 5 },
  ])
})

/**
 * Calls that the audit log records, with the usual entry of each. They stand here as well as in the contract, because the handlers write what the contract
 * names: nothing else would notice a wrong action.
 */
const recorded = {
  'POST /v1/keys': 'key.created',
  'POST /v1/keys/{id}/rotate': 'key.rotated',
  'DELETE /v1/keys/{id}': 'key.revoked',
  'POST /v1/tasks/{id}/tokens': 'token.created',
  'DELETE /v1/tasks/{id}/tokens': 'token.revoked',
  'POST /v1/tasks/{id}/waits/{wait}/answer': 'wait.answered',
  'POST /v1/tasks/{id}/signals': 'signal.sent',
  'POST /v1/tasks/{id}/fork': 'task.forked',
  'POST /v1/tasks/{id}/retry': 'task.rewound',
  'POST /v1/tasks/{id}/cancel': 'task.canceled',
  'PATCH /v1/tasks/{id}': 'task.changed',
  'PUT /v1/tasks/{id}/state': 'state.set',
  'GET /v1/tasks/{id}/export': 'task.exported',
  'DELETE /v1/tasks/{id}': 'task.deleted',
  'POST /openai/v1/responses/{id}/cancel': 'task.canceled',
  'DELETE /openai/v1/responses/{id}': 'task.deleted',
  'POST /openai/v1/conversations/{id}': 'task.changed',
  'DELETE /openai/v1/conversations/{id}': 'task.deleted',
  'POST /openai/v1/conversations/{id}/items': 'task.changed',
  'DELETE /openai/v1/conversations/{id}/items/{item}': 'task.changed',
  'POST /openai/v1/files': 'file.created',
  'DELETE /openai/v1/files/{id}': 'file.deleted',
  'POST /v1/files': 'file.created',
  'DELETE /v1/files/{id}': 'file.deleted',
  'PUT /v1/store/{scope}/{key}': 'store.set',
  'PATCH /v1/store/{scope}/{key}': 'store.set',
  'DELETE /v1/store/{scope}/{key}': 'store.removed',
  'DELETE /v1/store/{scope}': 'store.removed',
  'POST /v1/schedules': 'schedule.created',
  'POST /v1/schedules/{id}/pause': 'schedule.paused',
  'POST /v1/schedules/{id}/resume': 'schedule.resumed',
  'POST /v1/schedules/{id}/trigger': 'schedule.triggered',
  'DELETE /v1/schedules/{id}': 'schedule.deleted',
  'POST /v1/webhooks': 'webhook.created',
  'PATCH /v1/webhooks/{id}': 'webhook.changed',
  'POST /v1/webhooks/{id}/deliveries/{delivery}/retry': 'webhook.retried',
  'DELETE /v1/webhooks/{id}': 'webhook.deleted',
  'POST /ag-ui/{agent}/threads/{thread}/cancel': 'task.canceled',
  'POST /a2a/{agent}/tasks/{task}': 'task.canceled',
  'PUT /v1/limits/{agent}': 'limits.set',
  'DELETE /v1/limits/{agent}': 'limits.removed',
  'PATCH /v1/agents/{name}': 'agent.resumed',
  'DELETE /v1/agents/{name}': 'agent.removed',
} satisfies Record<string, AuditAction>

/** Calls that send an input to a task, new or not, which has it; what else such a call does, the test below checks. The last one reads. */
const unrecorded = [
  ...[
    'POST /v1/tasks',
    'POST /v1/tasks/{id}/turns',
    'POST /openai/v1/responses',
    'POST /openai/v1/chat/completions',
    'POST /openai/v1/conversations',
    'POST /ag-ui/{agent}',
  ],
  ...['POST /a2a/{agent}', 'POST /a2a/{agent}/message:send', 'POST /a2a/{agent}/message:stream', 'POST /mcp', 'POST /v1/events'],
]

test('the audit log records every call that changes something, but for those that send an input', () => {
  const changing = guarded.filter(([route, { scope }]) => scope !== 'worker' && !route.startsWith('GET ')).map(([route]) => route)
  expect([...Object.keys(recorded).filter(route => !route.startsWith('GET ')), ...unrecorded].sort()).toEqual(changing.sort())
  const named = Object.entries(rows).flatMap(([route, { audited }]) => (audited ? [[route, [audited].flat()[0]] as const] : []))
  expect(Object.fromEntries(named)).toEqual(recorded)
})

test('the audit log has one entry for each change, with its caller, and shows a tenant its own alone', async () => {
  const admin = await makeKey('acme', ['admin'])
  const task = await waitingTask()
  const read = async (key: string, query: string): Promise<AuditEntry[]> =>
    JSON.parse((await ask('GET /v1/audit', { key, query: `?key=${admin.id}${query}` })).body).data
  const secrets: string[] = []
  for (const route of Object.keys(recorded)) {
    const reply = await ask(route, { id: await idToChange(route), body: rows[route]?.body, key: admin.key })
    expect([route, reply.status]).toEqual([route, rows[route]?.status])
    secrets.push(/"secret":"([^"]+)"/.exec(reply.body)?.[1] ?? admin.key)
  }
  await ask('POST /v1/tasks/{id}/cancel', { id: task, body: {}, key: await tokenFor(task, ['cancel'], 60, admin.key) })
  const interrupted = await waitingTask()
  const interrupt = { input: 'now', ifBusy: 'interrupt', after: 0 }
  await ask('POST /v1/tasks/{id}/turns', { id: interrupted, body: interrupt, key: admin.key })
  // Neither a change that is refused nor one that changes nothing has an entry.
  await ask('DELETE /v1/tasks/{id}', { id: randomUUID(), key: admin.key })
  await ask('HEAD /v1/tasks/{id}/export', { id: task, key: admin.key })
  await ask('POST /v1/tasks/{id}/cancel', { id: task, body: {}, key: admin.key })
  await ask('POST /v1/tasks/{id}/turns', { id: interrupted, body: { input: 'now', secrets: { TOKEN: 'a-secret-value' } }, key: admin.key })
  await ask('POST /v1/tasks', { body: { agent: 'echo', secrets: { TOKEN: 'a-secret-value' }, start: false }, key: admin.key })
  const asking = await askingTask()
  await ask('POST /v1/tasks/{id}/turns', { id: asking, body: { input: 'now', ifBusy: 'decline' }, key: admin.key })
  const previous = `${await newTask()}.1.1`
  const next = { model: 'echo', input: 'more', background: true, previous_response_id: previous }
  for (const _ of ['continues', 'forks']) await ask('POST /openai/v1/responses', { body: next, key: admin.key })
  const later = [
    'token.created',
    'task.canceled',
    'task.canceled',
    'task.rewound',
    'secrets.set',
    'secrets.set',
    'wait.answered',
    'task.forked',
  ]
  const expected = [...Object.values(recorded), ...later]
  const entries = await until('all entries can be read', async () => {
    const found = await read(admin.key, '')
    return found.length >= expected.length && found
  })
  expect(entries.map(({ action }) => action)).toEqual(expected.toReversed())
  for (const { tenant, key, address } of entries) expect([tenant, key, address]).toEqual(['acme', admin.id, '127.0.0.1'])
  expect(entries[0]).toMatchObject({ target: previous.slice(0, 36), details: { fork: expect.any(String) } })
  expect(entries[1]).toMatchObject({ target: asking, details: { action: 'decline', turn: 1 } })
  expect(entries[4]).toMatchObject({ target: interrupted, details: { discarded: 1 } })
  expect(entries[5]).toMatchObject({ via: 'key', target: interrupted, details: { scope: 'interrupt' } })
  expect(entries[6]).toMatchObject({ via: 'token', target: task, details: { scope: 'all' } })
  expect(entries.find(({ action }) => action === 'agent.removed')).toMatchObject({ via: 'key', target: idle })
  for (const secret of [...secrets, 'a-secret-value']) expect(JSON.stringify(entries)).not.toContain(secret)
  expect(await read(admin.key, `&limit=3&cursor=${entries[0]?.id}`)).toEqual(entries.slice(1, 4))
  expect(await read(admin.key, '&action=key.revoked')).toHaveLength(1)
  expect(await read(other.key, '')).toEqual([])
  expect(await read(root, '&tenant=acme')).toEqual(entries)
  expect(codeOf(await ask('GET /v1/audit', { key: other.key, query: '?tenant=acme' }))).toEqual([403, 'forbidden'])
})

test('requests of a key that are refused are one entry of its tenant a minute and code, with their number', async () => {
  const { id, key } = await makeKey('acme', ['tasks:read'])
  const admin = narrow.get('admin')?.key
  const calls = 20
  for (let call = 0; call < calls; call += 1) expect((await ask('POST /v1/keys', { key, body: { name: 'made' } })).status).toBe(403)
  const read = async (reader: string | undefined, query: string): Promise<AuditEntry[]> =>
    JSON.parse((await ask('GET /v1/audit', { key: reader, query: `?action=request.refused${query}` })).body).data
  const entries = await until('the entry can be read', async () => {
    const found = await read(admin, `&key=${id}`)
    return found.length > 0 && found
  })
  const route = 'POST /v1/keys'
  expect(entries).toMatchObject([{ tenant: 'acme', target: 'forbidden', via: 'key', key: id, details: { routes: [route] } }])
  expect(entries[0]?.details.count).toBeLessThanOrEqual(calls)
  // Without a valid key, the tenant is unknown.
  const unknown = await until('the entry can be read', async () => {
    const found = await read(root, '&target=unauthorized')
    return found.length > 0 && found
  })
  expect(unknown[0]).toMatchObject({ via: 'none', address: '127.0.0.1' })
  expect([unknown[0]?.tenant, await read(admin, '&target=unauthorized')]).toEqual([undefined, []])
})

test('a key for all tenants has its entry in the installation’s audit log, which the root key alone reads', async () => {
  const { id } = await keyring.create({ tenant: 'rival', scopes: ['worker'], allTenants: true })
  const read = async (key: string): Promise<AuditEntry[]> =>
    JSON.parse((await ask('GET /v1/audit', { key, query: `?target=${id}` })).body).data
  const [entry] = await until('the entry can be read', async () => {
    const found = await read(root)
    return found.length > 0 && found
  })
  expect(entry).toMatchObject({ action: 'key.created', via: 'database', details: { scopes: ['worker'], allTenants: true } })
  expect([entry?.tenant, await read(other.key)]).toEqual([undefined, []])
})

test('limits, pauses and agents of one tenant neither show nor matter to another', async () => {
  await addAgents('acme')
  const { key } = await makeKey('acme', ['admin', 'tasks:write'])
  expect((await ask('PATCH /v1/agents/{name}', { key, body: { paused: true } })).status).toBe(200)
  expect(codeOf(await ask('PATCH /v1/agents/{name}', { key: other.key, body: { paused: false } }))).toEqual([404, 'not_found'])
  expect(codeOf(await ask('DELETE /v1/agents/{name}', { key: other.key }))).toEqual([404, 'not_found'])
  expect(codeOf(await ask('GET /v1/limits/{agent}', { key: other.key }))).toEqual([404, 'not_found'])
  expect((await ask('GET /v1/limits', { key: other.key })).body).toBe('{"data":[]}')
  expect((await ask('DELETE /v1/limits/{agent}', { key: other.key })).status).toBe(204)
  expect((await ask('GET /v1/limits/{agent}', { key })).status).toBe(200)
})

test('a stream of several tasks is refused if one is of another tenant, as if that one did not exist', async () => {
  const [mine, foreign, unknown] = [await newTask(other.key), await newTask(), randomUUID()]
  const watch = (...ids: string[]) =>
    ask('POST /v1/events', { key: other.key, body: { tasks: Object.fromEntries(ids.map(id => [id, null])) } })
  for (const id of [foreign, unknown]) {
    const refused = await watch(mine, id)
    expect(codeOf(refused)).toEqual([404, 'task_not_found'])
    expect(JSON.parse(refused.body).error.details).toEqual([{ path: `/tasks/${id}`, reason: 'No such task' }])
  }
  expect((await watch(mine)).status).toBe(200)
})

describe.each(ofOneKey)('%s', (route, { body }) => {
  test('responds to another tenant as if the key did not exist, and so it does for a key of all tenants', async () => {
    const made = await makeKey('acme', ['tasks:read'])
    const shared = await keyring.create({ tenant: 'rival', scopes: ['worker'], allTenants: true })
    const unknown = await ask(route, { id: '0'.repeat(16), body, key: other.key })
    expect(codeOf(unknown)).toEqual([404, 'not_found'])
    for (const { id } of [made, shared]) expect(await ask(route, { id, body, key: other.key })).toEqual(unknown)
    expect((await ask('GET /v1/tasks', { key: made.key })).status).toBe(200)
  })
})

describe.each([...ofOneWebhook, ...ofOneSchedule])('%s', (route, { body }) => {
  test('responds to another tenant as if it did not exist', async () => {
    const id = await idFor(route)
    const unknown = await ask(route, { id: randomUUID(), body, key: other.key })
    expect(codeOf(unknown)).toEqual([404, 'not_found'])
    expect(await ask(route, { id, body, key: other.key })).toEqual(unknown)
    const kept = await ask(route.includes('webhooks') ? 'GET /v1/webhooks/{id}' : 'GET /v1/schedules/{id}', { id, key: own.key })
    expect([kept.status, kept.body.includes('"status":"active"')]).toEqual([200, true])
  })
})

describe('a file', () => {
  const [reading, removing] = ['GET /v1/files/{id}', 'DELETE /v1/files/{id}']

  test.each([reading, removing])('%s responds to another tenant as if the file did not exist', async route => {
    const id = await newFile()
    const unknown = await ask(route, { id: randomUUID(), key: other.key })
    expect(codeOf(unknown)).toEqual([404, 'not_found'])
    expect(await ask(route, { id, key: other.key })).toEqual(unknown)
    expect((await ask(reading, { id, key: own.key })).status).toBe(200)
  })

  test('of another tenant, or of another task than that of the token, cannot be referred to', async () => {
    const [id, task, another] = [await newFile(), await newTask(), await newTask()]
    const input = (file: string) => ({ input: { type: 'media', mimeType: 'text/plain', file } })
    const details = [{ path: '/input/file', reason: 'No such file' }]
    const foreign = await ask('POST /v1/tasks', { key: other.key, body: { agent: 'echo', ...input(id) } })
    expect([foreign.status, JSON.parse(foreign.body).error.details]).toEqual([400, details])
    const route = 'POST /v1/tasks/{id}/turns'
    const token = await tokenFor(task, ['send'])
    for (const file of [id, await newFile(await tokenFor(another, ['send']))]) {
      const refused = await ask(route, { id: task, key: token, body: input(file) })
      expect([refused.status, JSON.parse(refused.body).error.details]).toEqual([400, details])
    }
    expect((await ask(route, { id: task, key: token, body: input(await newFile(token)) })).status).toBe(202)
    expect((await ask(route, { id: task, key: own.key, body: input(id) })).status).toBe(202)
    expect((await ask(reading, { id, key: await tokenFor(task, ['read']) })).status).toBe(200)
  })

  test('of another tenant, or of tasks of another agent, cannot be referred to in AG-UI and A2A', async () => {
    const file = await usedFile()
    const content = [{ type: 'document', source: { type: 'file', value: file } }]
    const refer = async ({ key }: { key: string }) => {
      const body = { ...run, threadId: randomUUID(), runId: randomUUID(), messages: [{ id: 'm', role: 'user', content }] }
      const { message: about } = messageOf(randomUUID())
      const parts = [{ url: `rivulet:files/${file}` }]
      const replies = [
        await ask('POST /ag-ui/{agent}', { agent: 'scripted', key, body }),
        await ask('POST /a2a/{agent}/message:send', { agent: 'scripted', key, body: { message: { ...about, parts } } }),
      ]
      return replies.map(reply => [reply.status, reply.body.includes('No such file')])
    }
    const refused = [400, true]
    expect([await refer(other), await refer(strange)]).toEqual([
      [refused, refused],
      [refused, refused],
    ])
    expect(await refer(own)).toEqual([
      [200, false],
      [200, false],
    ])
  })

  test('is uploaded with a token that may send, and read with one of the same task that may read', async () => {
    const [task, another] = [await newTask(), await newTask()]
    for (const can of ['read', 'cancel'] as const)
      expect(codeOf(await ask('POST /v1/files', { key: await tokenFor(task, [can]), body: 'x' }))).toEqual([403, 'forbidden'])
    const id = await newFile(await tokenFor(task, ['send']))
    expect((await ask(reading, { id, key: await tokenFor(task, ['read']) })).status).toBe(200)
    for (const can of ['send', 'cancel'] as const)
      expect(codeOf(await ask(reading, { id, key: await tokenFor(task, [can]) }))).toEqual([403, 'forbidden'])
    for (const [what, key, file] of [
      ['the token of another task', await tokenFor(another, rights), id],
      ['a file that no task has', await tokenFor(task, rights), await newFile()],
      ['a file that is not there', await tokenFor(task, rights), randomUUID()],
    ] as const)
      expect([what, codeOf(await ask(reading, { id: file, key }))]).toEqual([what, [404, 'not_found']])
    expect(codeOf(await ask(removing, { id, key: await tokenFor(task, rights) }))).toEqual([403, 'forbidden'])
  })
})

describe('what is not about one task', () => {
  test('a list of keys has those of the caller’s tenant, and the root key’s has all', async () => {
    const shared = await keyring.create({ tenant: 'rival', scopes: ['worker'], allTenants: true })
    const idsOf = async (key: string, query = '') =>
      JSON.parse((await ask('GET /v1/keys', { key, query })).body).data.map(({ id }: { id: string }) => id)
    const theirs = await idsOf(other.key)
    expect([theirs.includes(other.id), theirs.includes(own.id), theirs.includes(shared.id)]).toEqual([true, false, false])
    const listed = [...(await idsOf(root, '?tenant=acme')), ...(await idsOf(root, '?tenant=rival'))]
    expect([other, own, shared].filter(({ id }) => !listed.includes(id))).toEqual([])
    expect(codeOf(await ask('GET /v1/keys', { key: other.key, query: '?tenant=acme' }))).toEqual([403, 'forbidden'])
    // The id of a foreign key is no place in this tenant's list.
    expect(codeOf(await ask('GET /v1/keys', { key: other.key, query: `?cursor=${own.id}` }))).toEqual([400, 'bad_cursor'])
  })

  test('lists, names, idempotency keys and figures are each tenant’s own', async () => {
    const secret = randomUUID()
    const body = { agent: 'echo', name: secret, input: 'hello', metadata: { secret } }
    const post = (key: string) =>
      createClient(() => platform.url).post<{ task: { id: string } }>('/v1/tasks', body, {
        ...{ authorization: `Bearer ${key}`, 'idempotency-key': secret },
      })
    const [mine, theirs, again] = [await post(own.key), await post(other.key), await post(own.key)]
    expect([mine.status, theirs.status, again.status]).toEqual([201, 201, 201])
    expect(theirs.body.task.id).not.toBe(mine.body.task.id)
    expect([again.body.task.id, again.headers.get('idempotent-replayed')]).toEqual([mine.body.task.id, 'true'])
    for (const query of ['', `?name=${secret}`, `?metadata.secret=${secret}`, '?agent=echo']) {
      const { body: page } = await ask('GET /v1/tasks', { key: other.key, query })
      expect([query, page.includes(mine.body.task.id), page.includes(theirs.body.task.id)]).toEqual([query, false, true])
    }
    await ask('POST /v1/tasks', { key: own.key, body: { agent: 'echo', delayMs: 3_600_000 } })
    const queued = async (key: string) =>
      JSON.parse((await ask('GET /v1/agents', { key })).body).data.find((agent: { name: string }) => agent.name === 'echo').queued
    // Those of the other tenant have no delay, so they leave the queue.
    await until('the other tenant has none', async () => (await queued(other.key)) === 0)
    expect(await queued(own.key)).toBeGreaterThan(0)
  })

  test('a caller that may write but not read gets no stream of its writes', async () => {
    const name = randomUUID()
    const body = { agent: 'echo', name, input: 'hello' }
    await ask('POST /v1/tasks', { key: own.key, body })
    const key = narrow.get('tasks:write')?.key ?? ''
    for (const [accept, query] of [
      ['text/event-stream', ''],
      ['application/json', '?format=ai-sdk'],
    ] as const) {
      const headers = { accept, authorization: `Bearer ${key}` }
      expect((await createClient(() => platform.url).post(`/v1/tasks${query}`, body, headers)).status).toBe(403)
    }
    expect((await ask('POST /v1/tasks', { key, body })).status).toBe(200)
  })

  test('a task that is being watched is hidden from others as well as any', async () => {
    const steps = [{ delta: { index: 0, delta: { type: 'text', text: 'secret' } } }, { sleep: 60_000 }]
    const { body } = await ask('POST /v1/tasks', { key: own.key, body: { agent: 'scripted', params: { steps } } })
    const { id } = JSON.parse(body).task
    const viewer = await watch(id, { key: own.key })
    await viewer.heard('caught_up')
    const route = 'GET /v1/tasks/{id}/events'
    expect(await ask(route, { id, key: other.key })).toEqual(await ask(route, { id: randomUUID(), key: other.key }))
    viewer.leave()
    await ask('POST /v1/tasks/{id}/cancel', { id, key: own.key, body: {} })
  })
})

describe('a token', () => {
  test('that may send but not cancel may not interrupt', async () => {
    const id = await newTask()
    const route = 'POST /v1/tasks/{id}/turns'
    const body = { input: 'now', ifBusy: 'interrupt' }
    expect(codeOf(await ask(route, { id, body, key: await tokenFor(id, ['send']) }))).toEqual([403, 'forbidden'])
    expect((await ask(route, { id, body, key: await tokenFor(id, ['send', 'cancel']) })).status).toBe(202)
  })

  test('gives no more than its key may', async () => {
    const id = await newTask()
    const key = narrow.get('tasks:read')?.key
    for (const can of ['send', 'cancel', rights]) {
      expect(codeOf(await ask('POST /v1/tasks/{id}/tokens', { id, key, body: { can } }))).toEqual([403, 'forbidden'])
    }
  })

  test('comes in the query of the stream, and is followed by a fresh one before it ends; neither is ever logged', async () => {
    const id = await newTask()
    const first = await tokenFor(id, ['read'], 10)
    const viewer = await watch(id, { query: `?follow=true&token=${first}` })
    const [, fresh = ''] = /"token":"([^"]+)"/.exec(await viewer.heard('event: token')) ?? []
    expect(fresh).not.toBe(first)
    expect((await ask('GET /v1/tasks/{id}', { id, key: fresh })).status).toBe(200)
    await until('the first one has ended', async () => (await ask('GET /v1/tasks/{id}', { id, key: first })).status === 401)
    const next = await watch(id, { query: `?follow=true&token=${fresh}` })
    await next.heard('caught_up')
    next.leave()
    viewer.leave()
    const said = JSON.stringify(platform.apis.map(({ lines }) => lines))
    for (const secret of [first, fresh, own.key, own.key.slice(-43), root]) expect(said.includes(secret)).toBe(false)
  })
})

describe('a key that is revoked', () => {
  test('has its streams ended within 30 s, those of its tokens too, and no others', async () => {
    const doomed = await makeKey('acme', ['tasks:read'])
    const id = await newTask()
    const token = await tokenFor(id, ['read'], 3_600, doomed.key)
    const [byKey, byToken, kept] = [
      await watch(id, { key: doomed.key, query: '?follow=true' }),
      await watch(id, { query: `?follow=true&token=${token}` }),
      await watch(id, { key: own.key, query: '?follow=true' }),
    ]
    for (const viewer of [byKey, byToken, kept]) await viewer.heard('caught_up')
    const since = performance.now()
    await keyring.revoke(doomed.id)
    await Promise.all([byKey.ended, byToken.ended])
    expect(performance.now() - since).toBeLessThan(30_000)
    expect(kept.hasEnded()).toBe(false)
    for (const key of [doomed.key, token]) {
      // The end of a stream may close the connection that the next question is sent on.
      await until('it is refused', async () => (await ask('GET /v1/tasks/{id}', { id, key }).catch(() => null))?.status === 401)
    }
    kept.leave()
  })
})

type Watched = { heard(text: string): Promise<string>; ended: Promise<void>; hasEnded(): boolean; leave(): void }

async function watch(
  id: string,
  { key, query = '', url = platform.url }: { key?: string; query?: string; url?: string },
): Promise<Watched> {
  const leaving = new AbortController()
  const headers = { ...(key !== undefined && { authorization: `Bearer ${key}` }) }
  const response = await fetch(`${url}/v1/tasks/${id}/events${query}`, { headers, signal: leaving.signal })
  expect(response.status).toBe(200)
  let text = ''
  let hasEnded = false
  const ended = read().catch(() => {})
  return {
    heard: part => until(`the stream says ${part}`, () => text.includes(part) && text),
    ended,
    hasEnded: () => hasEnded,
    leave: () => leaving.abort(),
  }

  async function read(): Promise<void> {
    const decoder = new TextDecoder()
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true })
    hasEnded = true
  }
}
