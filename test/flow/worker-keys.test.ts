/**
 * Every route below /internal and /worker/v1, tried by worker keys that may not: of another tenant, of another agent, without the claim, and without a key. Each
 * gets what it would get for a turn that does not exist, and changes nothing. The routes are those that the API says it has; one without a row
 * here fails.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connectRedis, createTurnConsumer, type JobEnd } from '@rivulet/broker'
import type { ClaimResult } from '@rivulet/contract/internal'
import type { CreateKey } from '@rivulet/contract/keys'
import { type AgentDefinition, createWorker, defineAgent, delta, type Logger, type WorkerOptions } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { openTestKeyring, pepper, type TestKeyring } from '../support/platform/keyring.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { type Accepted, createClient, type ErrorReply, type Reply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { startProxy } from '../support/viewers/proxy.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test', KEY_PEPPER: pepper }

/** A turn that a worker holds. */
type Held = { task: string; turnId: string; epoch: number; claimId: string }

type Row = {
  /** What a worker asks about its turn. */
  ask: (held: Held) => object
  /** What the turn's holder gets. */
  holder: (held: Held) => object
  /** What is asked before the turn is claimed. */
  isBeforeClaim?: true
  /** What is asked is in the headers. */
  isRead?: true
}

const holding = ({ turnId, epoch, claimId }: Held) => ({ turnId, epoch, claimId })
const finish = { outcome: { status: 'completed' }, n: 0, digest: '' }

const stamp = ({ task }: Held) => ({ task, turn: 1, attempt: 1, at: 1 })
const content = { type: 'text', text: 'words', format: 'plain' }
const spoken = (held: Held) => ({ type: 'message.started', ...stamp(held), index: 1, author: 'agent', content })
const appendOf = (held: Held, ...events: unknown[]) => ({
  ...holding(held),
  first: 1,
  entries: events.map(event => JSON.stringify(event)).join('\n'),
})

const wanted = { name: 'go', kind: 'approval', title: 'May I?', actions: ['accept'], metadata: {}, expires: { inMs: 60_000 } }

const ofStore = { action: 'put', scope: 'tenant', key: 'one', value: 'secret' }

const rows: Record<string, Row> = {
  claim: {
    ask: ({ turnId, claimId }) => ({ worker: 'w', turnId, claimId }),
    holder: () => ({ result: 'claimed' }),
    isBeforeClaim: true,
  },
  heartbeat: { ask: held => ({ worker: 'w', turns: [holding(held)] }), holder: () => ({ lost: [] }) },
  append: { ask: held => ({ appends: [appendOf(held, spoken(held))] }), holder: () => ({ results: ['ok'] }) },
  reopen: { ask: holding, holder: ({ epoch }) => ({ result: 'reopened', epoch: epoch + 2 }) },
  step: { ask: ({ turnId, claimId }) => ({ turnId, claimId, name: 'one', memory: '{}' }), holder: () => ({ result: 'remembered' }) },
  usage: {
    ask: ({ turnId, claimId }) => ({ turnId, claimId, records: [{ id: 'a', usage: { inputTokens: 1 } }] }),
    holder: () => ({ isOverBudget: false }),
  },
  store: { ask: ({ turnId, claimId }) => ({ turnId, claimId, call: ofStore }), holder: () => ({ stored: { value: 'secret' } }) },
  release: { ask: holding, holder: () => ({ result: 'released' }) },
  finish: { ask: held => ({ ...holding(held), ...finish }), holder: () => ({ result: 'committed' }) },
  ask: {
    ask: ({ turnId, claimId }) => ({ turnId, claimId, waits: [wanted] }),
    holder: () => ({ result: 'asked', waits: [{ name: 'go', status: 'open' }] }),
  },
  spawn: {
    ask: ({ turnId, claimId }) => ({
      turnId,
      claimId,
      children: [{ name: 'one', agent: 'played', detached: true, onParentEnd: 'abandon' }],
    }),
    holder: () => ({ result: 'spawned', children: [{ name: 'one' }], waits: [] }),
  },
  child: { ask: ({ turnId, claimId }) => ({ turnId, claimId, name: 'one' }), holder: () => ({ data: [], nextCursor: null }) },
  waits: { ask: ({ turnId, claimId }) => ({ turnId, claimId }), holder: () => ({ waits: [] }) },
  take: { ask: ({ turnId, claimId }) => ({ turnId, claimId, after: 0, maxBytes: 1_000 }), holder: () => ({ joined: [] }) },
  park: { ask: held => ({ ...holding(held), n: 0, digest: '' }), holder: () => ({ result: 'answered' }) },
  messages: {
    ask: ({ turnId, claimId }) => ({ turnId, claimId }),
    holder: ({ task }) => ({ data: [{ task, content: { text: 'secret' } }] }),
  },
}

const byWords = ({ turnId, epoch, claimId }: Held) => ({ turn: turnId, claim: claimId, epoch })
const inHeaders = ({ turnId, claimId }: Held) => ({ 'x-turn-id': turnId, ...(claimId && { 'x-claim-id': claimId }) })

/** The same for the public protocol. */
const publicRows: Record<string, Row> = {
  heartbeat: { ask: held => ({ worker: 'w', turns: [byWords(held)] }), holder: () => ({ lost: [] }) },
  append: {
    ask: held => ({ appends: [{ ...byWords(held), first: 1, updates: [{ type: 'full', index: 0, content }] }] }),
    holder: () => ({ results: [{ result: 'ok' }] }),
  },
  step: {
    ask: ({ turnId, claimId }) => ({ turn: turnId, claim: claimId, name: 'one', result: 1 }),
    holder: () => ({ result: 'remembered' }),
  },
  usage: {
    ask: ({ turnId, claimId }) => ({ turn: turnId, claim: claimId, records: [{ id: 'a', usage: { inputTokens: 1 } }] }),
    holder: () => ({ isOverBudget: false }),
  },
  store: {
    ask: ({ turnId, claimId }) => ({ turn: turnId, claim: claimId, call: ofStore }),
    holder: () => ({ stored: { value: 'secret' } }),
  },
  take: { ask: held => ({ ...byWords(held), after: 0 }), holder: () => ({ joined: [] }) },
  ask: {
    ask: held => ({ ...byWords(held), waits: [wanted] }),
    holder: () => ({ result: 'asked', waits: [{ name: 'go', status: 'open' }] }),
  },
  spawn: {
    ask: ({ turnId, claimId }) => ({
      ...{ turn: turnId, claim: claimId },
      children: [{ name: 'one', agent: 'played', detached: true, onParentEnd: 'abandon' }],
    }),
    holder: () => ({ result: 'spawned', children: [{ name: 'one' }], waits: [] }),
  },
  waits: { ask: inHeaders, holder: () => ({ waits: [] }), isRead: true },
  history: { ask: inHeaders, holder: ({ task }) => ({ data: [{ task, content: { text: 'secret' } }] }), isRead: true },
  park: { ask: held => ({ ...byWords(held), last: 0 }), holder: () => ({ result: 'answered' }) },
  release: { ask: byWords, holder: () => ({ result: 'released' }) },
  finish: { ask: held => ({ ...byWords(held), last: 0, status: 'completed' }), holder: () => ({ result: 'committed' }) },
}

const calls = [
  ...Object.entries(rows).map(([name, row]) => [`/internal/${name}`, row] as const),
  ...Object.entries(publicRows).map(([name, row]) => [`/worker/v1/${name}`, row] as const),
]

let platform: Platform
let keyring: TestKeyring
/** By what they may do. All of them have the scope `worker`. */
const keys = { everywhere: '', ofAcme: '', ofRival: '', played: '', otherAgent: '', acmeTasks: '', rivalTasks: '' }

beforeAll(async () => {
  // No lease expires while a test looks at its turn: expired turns would also fill the agent's queue.
  platform = await startPlatform({ env: { ...env, LEASE_MS: '600000' }, workers: 0 })
  keyring = openTestKeyring(platform.databaseUrl)
  keys.everywhere = await makeKey({ allTenants: true })
  keys.ofAcme = await makeKey({ tenant: 'acme' })
  keys.ofRival = await makeKey({ tenant: 'rival' })
  keys.played = await makeKey({ tenant: 'acme', agents: ['played'] })
  keys.otherAgent = await makeKey({ allTenants: true, agents: ['other'] })
  keys.acmeTasks = await makeKey({ tenant: 'acme', scopes: ['tasks:read', 'tasks:write'] })
  keys.rivalTasks = await makeKey({ tenant: 'rival', scopes: ['tasks:read', 'tasks:write'] })
  const agents = ['played', 'other'].map(name => ({ name, description: 'shared' }))
  expect((await ask('hello', { worker: 'greeter', agents }, keys.everywhere)).status).toBe(200)
})
afterAll(async () => {
  await keyring.close()
  await platform.close()
})

async function makeKey(request: Partial<CreateKey>): Promise<string> {
  return (await keyring.create({ tenant: 'default', scopes: ['worker'], ...request })).key
}

function ask<T = unknown>(call: string, body: unknown, key?: string): Promise<Reply<T>> {
  const path = call.startsWith('/') ? call : `/internal/${call}`
  return createClient(() => platform.url).post<T>(path, body, key ? { authorization: `Bearer ${key}` } : {})
}

function send<T = unknown>(path: string, row: Row, held: Held, key?: string): Promise<Reply<T>> {
  const about = row.ask(held)
  if (!row.isRead) return ask(path, about, key)
  return createClient(() => platform.url).get<T>(path, { ...about, ...(key && { authorization: `Bearer ${key}` }) })
}

/** Status and body, without the id that was asked for and without what differs by chance. */
async function said(call: string, row: Row, held: Held, key?: string): Promise<unknown> {
  const { status, body } = await send(call, row, held, key)
  return [
    status,
    JSON.parse(
      JSON.stringify(body)
        .replaceAll(held.turnId, 'TURN')
        .replace(/"requestId":"[^"]+"/, '"requestId":""'),
    ),
  ]
}

function post<T>(path: string, body: object, key: string): Promise<Reply<T>> {
  return createClient(() => platform.url).post<T>(path, body, { authorization: `Bearer ${key}` })
}

async function newTurn(agent = 'played'): Promise<Held> {
  const { body } = await post<Accepted>('/v1/tasks', { agent, input: 'secret' }, keys.acmeTasks)
  return { task: body.task.id, turnId: body.turn.id, epoch: 1, claimId: randomUUID() }
}

async function claimed(): Promise<Held> {
  return claim(await newTurn())
}

/** Other turns may be before it in the agent's queue: then the relay sends it with its next round. */
function claim(held: Held, worker = 'w'): Promise<Held> {
  return until('the turn is claimed', async () => {
    const { body } = await ask<ClaimResult>('claim', { ...rows.claim?.ask(held), worker }, keys.everywhere)
    return body.result === 'claimed' && { ...held, epoch: body.epoch }
  })
}

async function stored({ task, turnId }: Held): Promise<unknown> {
  const { rows: found } = await platform.pg.query('select * from turns where id = $1', [turnId])
  const { rows: steps } = await platform.pg.query('select * from steps where turn = $1', [turnId])
  const { rows: usage } = await platform.pg.query('select * from usage where turn = $1', [turnId])
  return [found, steps, usage, await platform.log(task)]
}

test('every route for workers is in the table, and no other', async () => {
  const { body } = await createClient(() => platform.url).get<{ paths: Record<string, object> }>('/openapi.json')
  const offered = Object.keys(body.paths).flatMap(path => path.split('/internal/')[1] ?? [])
  expect(offered.sort()).toEqual([...Object.keys(rows), 'hello', 'next', 'hints', 'file', 'files'].sort())
})

test('every route of the public protocol is in the table, and no other', async () => {
  const { body } = await createClient(() => platform.url).get<{ paths: Record<string, object> }>('/worker/v1/openapi.json')
  const offered = Object.keys(body.paths).map(path => path.replace('/worker/v1/', ''))
  expect(offered.sort()).toEqual([...Object.keys(publicRows), 'hello', 'claim', 'files', 'files/{id}'].sort())
})

describe.each(calls)('%s', (call, row) => {
  const prepare = () => (row.isBeforeClaim ? newTurn() : claimed())

  test('returns to a key of another tenant, or of another agent, what it returns for no turn', async () => {
    const held = await prepare()
    const before = await stored(held)
    const nowhere = { ...held, turnId: randomUUID() }
    const unknown = await said(call, row, nowhere, keys.everywhere)
    for (const name of ['ofRival', 'otherAgent'] as const) {
      expect([name, await said(call, row, held, keys[name])]).toEqual([name, unknown])
      expect([name, await said(call, row, nowhere, keys[name])]).toEqual([name, unknown])
    }
    expect(await stored(held)).toEqual(before)
  })

  test('refuses no key, and keys without the scope', async () => {
    const held = await prepare()
    const before = await stored(held)
    expect((await send(call, row, held)).status).toBe(401)
    expect((await send(call, row, held, keys.acmeTasks)).status).toBe(403)
    expect(await stored(held)).toEqual(before)
  })

  test.runIf(!row.isBeforeClaim)('needs the claim: another one is as good as no turn, and none is no request', async () => {
    const held = await claimed()
    const before = await stored(held)
    const unknown = await said(call, row, { ...held, turnId: randomUUID() }, keys.everywhere)
    expect(await said(call, row, { ...held, claimId: randomUUID() }, keys.everywhere)).toEqual(unknown)
    const { claimId: _, ...claimless } = held
    expect((await send<ErrorReply>(call, row, claimless as Held, keys.everywhere)).body.error.code).toBe('validation_failed')
    expect(await stored(held)).toEqual(before)
  })

  test.each(['everywhere', 'ofAcme', 'played'] as const)('does what a key that may asks for (%s)', async name => {
    const held = await prepare()
    const { status, body } = await send(call, row, held, keys[name])
    expect([status, body]).toEqual([200, expect.objectContaining({})])
    expect(body).toMatchObject(row.holder(held))
  })
})

describe('POST /internal/append', () => {
  const append = async (...appends: object[]) => (await ask<{ results: string[] }>('append', { appends }, keys.played)).body.results
  const textsOf = async ({ task }: Held) =>
    (await platform.log(task)).flatMap(({ event }) => (event.type === 'message.delta' ? [event.delta] : []))
  const delta = (held: Held, text: string, offset: number) => ({
    ...{ type: 'message.delta', ...stamp(held), index: 1, delta: { type: 'text', text }, offset },
  })

  test('writes a batch that is sent again once, and of a longer one only what is new', async () => {
    const held = await claimed()
    const [first, second, third] = [spoken(held), delta(held, ' are', 5), delta(held, ' cheap', 9)]
    expect(await append(appendOf(held, first, second))).toEqual(['ok'])
    expect(await append(appendOf(held, first, second))).toEqual(['duplicate'])
    expect(await append(appendOf(held, first, second, third))).toEqual(['ok'])
    expect(await textsOf(held)).toEqual([second.delta, third.delta])
    expect(await append(appendOf(held))).toEqual(['duplicate'])
    expect(await append({ ...appendOf(held, third), first: 9 })).toEqual(['gap'])
  })

  test('writes the turns of a batch that the worker holds, whatever the others are', async () => {
    const [held, lost] = [await claimed(), await claimed()]
    const before = await stored(lost)
    const foreign = { ...lost, claimId: randomUUID() }
    expect(await append(appendOf(foreign, spoken(lost)), appendOf(held, spoken(held)))).toEqual(['fenced', 'ok'])
    expect(await stored(lost)).toEqual(before)
  })

  test('rejects a worker that has lost the turn, also if it guesses the epoch of the next one', async () => {
    const held = await claimed()
    expect(await append(appendOf(held, spoken(held)))).toEqual(['ok'])
    await ask('release', holding(held), keys.everywhere)
    const next = await claim({ ...held, claimId: randomUUID() })
    const before = await stored(next)
    expect(await append(appendOf(held, spoken(held)), appendOf({ ...held, epoch: next.epoch }, spoken(held)))).toEqual(['fenced', 'fenced'])
    expect(await stored(next)).toEqual(before)
    expect(await append(appendOf(next, spoken(next)))).toEqual(['ok'])
  })

  test.each<[string, (held: Held, other: Held) => unknown]>([
    ['an event of another task', (_, other) => spoken(other)],
    [
      'the end of the turn, which is for the server to say',
      held => ({ type: 'turn.finished', ...stamp(held), status: 'completed', stopReason: 'stop' }),
    ],
    ['something else', () => 'words'],
  ])('refuses %s, and writes nothing of the batch', async (_, entry) => {
    const [held, other] = [await claimed(), await newTurn()]
    const before = await stored(held)
    const { status, body } = await ask<ErrorReply>('append', { appends: [appendOf(held, spoken(held), entry(held, other))] }, keys.played)
    expect([status, body.error.code]).toEqual([400, 'validation_failed'])
    expect(await stored(held)).toEqual(before)
  })
})

describe('a body that is larger than those of callers', () => {
  /** Sends the head alone: a response that comes was decided before the body was read. */
  const headOf = async (call: string, key: string, held?: Held): Promise<number> => {
    const about = held ? { 'x-turn-id': held.turnId, 'x-claim-id': held.claimId } : {}
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'content-length': 30_000_000, ...about }
    const sent = request(`${platform.url}/internal/${call}`, { method: 'POST', headers })
    onTestFinished(() => void sent.destroy())
    sent.on('error', () => {})
    sent.flushHeaders()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return response.statusCode ?? 0
  }

  test.each(['append', 'step'])('is rejected by /internal/%s before it is read, unless the key has claimed the turn', async call => {
    const held = await claimed()
    const others = [
      [undefined, keys.ofAcme],
      [{ ...held, claimId: randomUUID() }, keys.ofAcme],
      [{ ...held, turnId: randomUUID() }, keys.ofAcme],
      [held, keys.ofRival],
      [held, keys.acmeTasks],
    ] as const
    const statuses = await Promise.all(others.map(([turn, key]) => headOf(call, key, turn)))
    expect(statuses).toEqual([413, 404, 404, 404, 403])
  })

  test('is read from a worker that has lost the turn: it may be about other turns, too, and a step returns that the turn is lost', async () => {
    const [lost, held] = [await claimed(), await claimed()]
    await ask('release', holding(lost), keys.everywhere)
    const about = { authorization: `Bearer ${keys.ofAcme}`, 'x-turn-id': lost.turnId, 'x-claim-id': lost.claimId }
    const send = (call: string, body: object) => createClient(() => platform.url).post(`/internal/${call}`, body, about)
    const text = 'x'.repeat(3_000_000)
    const long = { ...spoken(held), content: { ...content, text } }
    const appended = await send('append', { appends: [appendOf(lost, spoken(lost)), appendOf(held, long)] })
    expect(appended).toMatchObject({ status: 200, body: { results: ['fenced', 'ok'] } })
    const { turnId, claimId } = lost
    const stepped = await send('step', { turnId, claimId, name: 'one', memory: JSON.stringify(text) })
    expect(stepped).toMatchObject({ status: 200, body: { result: 'superseded' } })
  })

  test('is written for the holder of the turn', async () => {
    const held = await claimed()
    const long = { ...spoken(held), content: { ...content, text: 'x'.repeat(3_000_000) } }
    const append = async (headers: Record<string, string>) => {
      const body = { appends: [appendOf(held, long)] }
      return createClient(() => platform.url).post('/internal/append', body, { authorization: `Bearer ${keys.ofAcme}`, ...headers })
    }
    expect(await append({ 'x-turn-id': held.turnId, 'x-claim-id': held.claimId })).toMatchObject({ status: 200, body: { results: ['ok'] } })
  })
})

test('metrics name to the keys of a tenant its agents and shared ones, and to a key for all tenants those of all', async () => {
  const own = `own-${randomUUID()}`
  const hello = { worker: randomUUID(), version: 'of-acme', agents: [{ name: own, description: '' }] }
  expect((await ask('hello', hello, keys.ofAcme)).status).toBe(200)
  const read = async (scopes: CreateKey['scopes'], terms: Partial<CreateKey>) => {
    const authorization = `Bearer ${await makeKey({ scopes, ...terms })}`
    return until('the agents are there', async () => {
      const text = await (await fetch(`${platform.url}/metrics`, { headers: { authorization } })).text()
      return text.includes('rivulet_turns_queued{agent="played"}') && text
    })
  }
  const all = await until('all tenants’ agents are there', async () => {
    const text = await read(['metrics'], { allTenants: true })
    return text.includes(own) && text
  })
  expect(all).toContain('version="of-acme"')
  expect(await read(['admin'], { tenant: 'acme' })).toContain(own)
  for (const scopes of [['admin'], ['metrics']] as const) {
    const text = await read([...scopes], { tenant: 'rival' })
    expect([text.includes(own), text.includes('of-acme'), text.includes('process_cpu_seconds_total')]).toEqual([false, false, true])
  }
})

describe('the id of a worker', () => {
  const workerOf = async (id: string) =>
    (await platform.pg.query('select agents, slots from workers where id = $1', [id])).rows[0] as { agents: string[] }

  test('belongs to the key that registered it: no other key changes its row, or claims a turn under it', async () => {
    const [worker, own] = [randomUUID(), `own-${randomUUID()}`]
    const hello = (key: string, ...names: string[]) =>
      ask<ErrorReply>('hello', { worker, slots: 3, agents: names.map(name => ({ name, description: '' })) }, key)
    expect((await hello(keys.ofAcme, own)).status).toBe(200)
    const before = await workerOf(worker)
    for (const key of [keys.ofRival, keys.everywhere, keys.played]) {
      const refused = await hello(key)
      expect([refused.status, refused.body.error]).toEqual([403, expect.objectContaining({ code: 'forbidden' })])
    }
    expect(await workerOf(worker)).toEqual(before)
    const { turnId } = await newTurn()
    const claim = { worker, turnId, claimId: randomUUID() }
    expect((await ask('claim', claim, keys.played)).status).toBe(403)
    expect((await ask<ClaimResult>('claim', claim, keys.ofAcme)).body.result).toBe('claimed')
    expect((await hello(keys.ofAcme, own)).status).toBe(200)
  })

  test('of a worker that a version of before registered belongs to the first key that registers it again', async () => {
    const worker = randomUUID()
    await platform.pg.query("insert into workers (id, agents, seen_at) values ($1, '{}', now())", [worker])
    const hello = async (key: string) => (await ask('hello', { worker, agents: [] }, key)).status
    expect([await hello(keys.ofRival), await hello(keys.ofAcme), await hello(keys.ofRival)]).toEqual([200, 403, 200])
  })
})

describe('/worker/v1/claim', () => {
  const claimFor = (key: string | undefined, agent: string) =>
    ask<{ turns: { turn: string }[] } & ErrorReply>('/worker/v1/claim', { worker: randomUUID(), agents: [agent], waitMs: 10_000 }, key)

  test('hands out the turns of agents that the key may serve, and refuses the others', async () => {
    const own = `own-${randomUUID()}`
    const ofOwn = await makeKey({ tenant: 'acme', agents: [own] })
    expect((await claimFor(ofOwn, own)).status).toBe(422)
    const hello = { protocol: 1, worker: randomUUID(), agents: [{ name: own, description: '' }] }
    expect((await ask('/worker/v1/hello', hello, keys.ofRival)).status).toBe(200)
    expect((await ask('/worker/v1/hello', { ...hello, worker: randomUUID() }, ofOwn)).status).toBe(200)
    expect((await ask('/worker/v1/hello', { ...hello, worker: randomUUID() }, keys.otherAgent)).status).toBe(403)
    // The agent of this name that the other tenant has gets none of these turns.
    const foreign = claimFor(keys.ofRival, own)
    const taken = claimFor(ofOwn, own)
    const { turnId } = await newTurn(own)
    expect((await taken).body).toMatchObject({ turns: [{ turn: turnId }] })
    expect((await foreign).body).toEqual({ turns: [] })
    for (const [key, agent, status] of [
      [ofOwn, 'played', 403],
      [keys.ofAcme, 'played', 422],
      [undefined, own, 401],
      [keys.acmeTasks, own, 403],
    ] as const)
      expect([key, (await claimFor(key, agent)).status]).toEqual([key, status])
  })

  test('under the id of another claim, or under the id of another key’s worker, returns none of its turns', async () => {
    const [own, worker, claimId] = [`own-${randomUUID()}`, randomUUID(), randomUUID()]
    const about = { protocol: 1, worker, agents: [{ name: own, description: '' }] }
    for (const key of [keys.ofAcme, keys.ofRival])
      expect((await ask('/worker/v1/hello', key === keys.ofAcme ? about : { ...about, worker: randomUUID() }, key)).status).toBe(200)
    const repeat = (key: string) =>
      ask<{ turns: { turn: string }[] }>('/worker/v1/claim', { worker, agents: [own], claimId, waitMs: 500 }, key)
    await newTurn(own)
    const first = await until('the turn is claimed', async () => {
      const { body } = await repeat(keys.ofAcme)
      return body.turns.length > 0 && body
    })
    expect((await repeat(keys.ofAcme)).body).toMatchObject({ turns: [{ turn: first.turns[0]?.turn }] })
    const { status, body } = await repeat(keys.ofRival)
    expect(status === 403 || body.turns.length === 0).toBe(true)
  })
})

describe('POST /internal/next and /internal/hints', () => {
  const next = (key: string, ...agents: string[]) =>
    ask<{ turn: { agent: string; turnId: string } | null } & ErrorReply>('next', { agents, waitMs: 10_000 }, key)

  test('hand out the turns of agents that the key may serve, and refuse the others', async () => {
    const own = `own-${randomUUID()}`
    const ofOwn = await makeKey({ tenant: 'acme', agents: [own] })
    expect((await next(ofOwn, own)).status).toBe(422)
    await ask('hello', { worker: randomUUID(), agents: [{ name: own, description: '' }] }, ofOwn)
    const taken = next(ofOwn, own)
    const { turnId } = await newTurn(own)
    expect((await taken).body).toEqual({ turn: { agent: own, turnId } })
    for (const [key, agent, status] of [
      [ofOwn, 'played', 403],
      [keys.ofRival, own, 422],
      [keys.ofAcme, 'played', 422],
    ] as const)
      expect([key, (await next(key, agent)).status]).toEqual([key, status])
    for (const call of ['next', 'hints'])
      for (const [key, status] of [
        [undefined, 401],
        [keys.acmeTasks, 403],
      ] as const)
        expect((await ask(call, call === 'next' ? { agents: [own], waitMs: 0 } : { worker: 'w', waitMs: 0 }, key)).status).toBe(status)
  })

  test('tell a worker that its turn is over, and to a key of another tenant nothing', async () => {
    const worker = randomUUID()
    const held = await claim(await newTurn(), worker)
    const hear = (key: string) => ask<{ over: string[] }>('hints', { worker, waitMs: 10_000 }, key)
    const heard = [keys.ofAcme, keys.ofRival].map(hear)
    await until('both are heard', async () => (await platform.redis.pubsub('NUMSUB', platform.keys.workerChannel(worker)))[1] === 1)
    await post(`/v1/tasks/${held.task}/cancel`, {}, keys.acmeTasks)
    const [ofAcme, ofRival] = await Promise.all(heard)
    expect([ofAcme?.body, ofRival?.body]).toEqual([
      { over: [held.turnId], answered: [] },
      { over: [], answered: [] },
    ])
  })
})

test('usage is also stored for an earlier claim of the turn, because a worker that has lost it reports what it had used', async () => {
  const held = await claimed()
  await ask('release', holding(held), keys.everywhere)
  await claim({ ...held, claimId: randomUUID() })
  await ask('usage', rows.usage?.ask(held), keys.everywhere)
  const { rows: usage } = await platform.pg.query('select id from usage where turn = $1', [held.turnId])
  expect(usage).toEqual([{ id: 'a' }])
})

test('a key for some agents spawns only those, and the others of the same call are created', async () => {
  const { turnId, claimId } = await claimed()
  const children = ['played', 'other'].map(agent => ({ name: agent, agent, detached: true, onParentEnd: 'abandon' }))
  const { body } = await ask('spawn', { turnId, claimId, children }, keys.played)
  expect(body).toMatchObject({
    result: 'spawned',
    children: [
      { name: 'played', task: expect.any(String) },
      { name: 'other', error: { code: 'forbidden', message: expect.stringContaining('"other"') } },
    ],
  })
})

describe.each(['/internal/files', '/worker/v1/files'])('%s', path => {
  const transfer = async (to: string, key: string, init: RequestInit): Promise<[number, string]> => {
    const headers = { authorization: `Bearer ${key}`, ...init.headers }
    const response = await fetch(`${platform.url}${to}`, { ...init, headers })
    const text = (await response.text()).replace(/"requestId":"[^"]+"/, '')
    return [response.status, text]
  }
  const upload = (held: Held, key: string) =>
    transfer(path, key, { method: 'POST', headers: { 'content-type': 'text/plain', ...inHeaders(held) }, body: 'secret' })
  const read = (held: Held, file: string, key: string) => {
    if (path.startsWith('/worker')) return transfer(`${path}/${file}`, key, { headers: inHeaders(held) })
    const { turnId, claimId } = held
    const headers = { 'content-type': 'application/json' }
    return transfer('/internal/file', key, { method: 'POST', headers, body: JSON.stringify({ turnId, claimId, file }) })
  }

  test('store and return a file for the holder of the turn alone, and say to others what they say of no turn', async () => {
    const held = await claimed()
    const [status, text] = await upload(held, keys.played)
    expect(status).toBe(200)
    const { id } = JSON.parse(text).file
    expect(await read(held, id, keys.ofAcme)).toEqual([200, 'secret'])
    const strangers = [
      [held, keys.ofRival],
      [held, keys.otherAgent],
      [{ ...held, claimId: randomUUID() }, keys.everywhere],
    ] as const
    const nowhere = { ...held, turnId: randomUUID() }
    const [noUpload, noRead] = [await upload(nowhere, keys.everywhere), await read(nowhere, id, keys.everywhere)]
    expect([noUpload[0], noRead[0]]).toEqual([404, 404])
    for (const [one, key] of strangers) expect([await upload(one, key), await read(one, id, key)]).toEqual([noUpload, noRead])
    expect((await upload(held, keys.acmeTasks))[0]).toBe(403)
    expect((await read(held, id, keys.acmeTasks))[0]).toBe(403)
  })
})

describe('POST /internal/hello', () => {
  const hello = (key: string, ...names: string[]) =>
    ask<ErrorReply>('hello', { worker: randomUUID(), agents: names.map(name => ({ name, description: 'mine' })) }, key)
  const agentsOf = async (key: string): Promise<{ name: string; description: string }[]> =>
    JSON.parse(await (await fetch(`${platform.url}/v1/agents`, { headers: { authorization: `Bearer ${key}` } })).text()).data

  test('takes only the agents of the key', async () => {
    expect((await hello(keys.otherAgent, 'other')).status).toBe(200)
    const refused = await hello(keys.otherAgent, 'other', 'played')
    expect([refused.status, refused.body.error.code, refused.body.error.message]).toEqual([
      403,
      'forbidden',
      expect.stringContaining('other'),
    ])
  })

  test('gives an agent that a tenant’s worker brings to that tenant alone', async () => {
    const own = `own-${randomUUID()}`
    expect((await hello(keys.ofAcme, own)).status).toBe(200)
    expect((await agentsOf(keys.acmeTasks)).map(({ name }) => name)).toContain(own)
    expect((await agentsOf(keys.rivalTasks)).map(({ name }) => name)).not.toContain(own)
    const create = async (key: string, extra: object = {}) => (await post('/v1/tasks', { agent: own, ...extra }, key)).status
    expect([await create(keys.acmeTasks), await create(keys.acmeTasks, { name: 'named' })]).toEqual([201, 201])
    expect([await create(keys.rivalTasks), await create(keys.rivalTasks, { name: 'named' })]).toEqual([422, 422])
    expect((await hello(keys.ofRival, own)).status).toBe(403)
    expect((await hello(keys.ofAcme, own)).status).toBe(200)
  })

  test('lets no older worker of a tenant take, or describe, an agent of all tenants', async () => {
    const refused = await hello(keys.ofAcme, 'played')
    expect([refused.status, refused.body.error.code, refused.body.error.message]).toEqual([
      ...[403, 'forbidden', expect.stringMatching(/played.*--all-tenants/)],
    ])
    expect(await agentsOf(keys.rivalTasks)).toContainEqual(expect.objectContaining({ name: 'played', description: 'shared' }))
  })
})

test('a turn whose job went to a worker that may not run it is sent again, and runs elsewhere', async () => {
  const taken: [key: string, result: string][] = []
  const consume = (key: string) => {
    const run = async (turnId: string): Promise<JobEnd> => {
      const { body } = await ask<ClaimResult>('claim', { worker: 'w', turnId, claimId: randomUUID() }, key)
      taken.push([key, body.result])
      return 'done'
    }
    const redis = connectRedis('blocking', { url: inject('redisUrl'), onError: () => {} })
    const consumer = createTurnConsumer({ queue: 'other', redis, keys: platform.keys, concurrency: 1, run, onError: () => {} })
    return async () => {
      await consumer.close()
      redis.disconnect()
    }
  }
  const leave = consume(keys.ofRival)
  await newTurn('other')
  await until('the job was taken in vain', () => taken.length > 0)
  expect(taken[0]).toEqual([keys.ofRival, 'settled'])
  await leave()
  const stop = consume(keys.ofAcme)
  onTestFinished(stop)
  await until('it runs elsewhere', () => taken.some(([key, result]) => key === keys.ofAcme && result === 'claimed'))
})

describe.each(['redis', 'http'] as const)('a worker process over %s', transport => {
  const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
  const withRedis = () => ({ redisUrl: inject('redisUrl'), redisPrefix: platform.keys.queuePrefix.slice(1, -':queue}'.length) })
  const serve = (key: string, agent: AgentDefinition, options: Partial<WorkerOptions> = {}) => {
    const where = transport === 'http' ? { transport } : withRedis()
    const worker = createWorker({
      agents: [agent],
      url: platform.url,
      ...where,
      key,
      log: silent,
      heartbeatMs: 200,
      drainMs: 0,
      ...options,
    })
    onTestFinished(() => worker.stop())
    return worker
  }
  const counting = (name: string) =>
    defineAgent(name, async turn => {
      const history = await turn.history()
      await turn.step('count', () => history.length)
      await turn.send(`heard ${history.length}`)
    })
  const start = (key: string, name: string) => serve(key, counting(name))
  const firstTask = (agent: string) =>
    until('the agent is there', async () => {
      const { status, body } = await post<Accepted>('/v1/tasks', { agent, input: 'hello' }, keys.acmeTasks)
      return status === 201 && body
    })
  const untilStatus = (turnId: string, wanted: string) =>
    until(`its turn is ${wanted}`, async () => {
      const { rows: turns } = await platform.pg.query('select status from turns where id = $1', [turnId])
      return turns[0].status === wanted
    })
  const textsOf = async (task: string) => {
    const { rows: found } = await platform.pg.query("select content->>'text' as text from messages where task = $1 order by index", [task])
    return found.map(({ text }) => text)
  }

  test('with the key of a tenant and an agent of its own does that tenant’s work', async () => {
    const own = `own-${randomUUID()}`
    start(await makeKey({ tenant: 'acme', agents: [own] }), own)
    const { task, turn } = await firstTask(own)
    await untilStatus(turn.id, 'completed')
    expect(await textsOf(task.id)).toEqual(['hello', 'heard 1'])
  })

  test('writes every word once, though the reply to an append is lost', async () => {
    const own = `own-${randomUUID()}`
    const proxy = await startProxy(platform.url)
    onTestFinished(() => proxy.close())
    const talking = defineAgent(own, async function* () {
      for (let i = 0; i < 50; i += 1) yield delta(0, `${i} `)
    })
    serve(await makeKey({ tenant: 'acme', agents: [own] }), talking, { url: proxy.url })
    const dropped = transport === 'http' ? proxy.dropReply('/internal/append') : Promise.resolve()
    const { task, turn } = await firstTask(own)
    await dropped
    await untilStatus(turn.id, 'completed')
    expect(await textsOf(task.id)).toEqual(['hello', Array.from({ length: 50 }, (_, i) => `${i} `).join('')])
  })

  test('hears of an answer and of a cancel at once, without a heartbeat', async () => {
    const own = `own-${randomUUID()}`
    let hasStopped = false
    const asking = defineAgent(own, async turn => {
      const { action } = await turn.ask('go', { title: 'May I?', hold: '60s' })
      await turn.send(action)
      await once(turn.signal, 'abort')
      hasStopped = true
    })
    serve(await makeKey({ tenant: 'acme', agents: [own] }), asking, { heartbeatMs: 600_000 })
    const { task, turn } = await firstTask(own)
    const wait = await until('the turn waits', async () => {
      const { rows: found } = await platform.pg.query('select id from waits where turn = $1', [turn.id])
      return found[0]?.id
    })
    await post(`/v1/tasks/${task.id}/waits/${wait}/answer`, { action: 'accept' }, keys.acmeTasks)
    await until('the agent has the answer', async () => JSON.stringify(await platform.log(task.id)).includes('"text":"accept"'))
    await post(`/v1/tasks/${task.id}/cancel`, {}, keys.acmeTasks)
    await until('the signal of the handler has fired', () => hasStopped)
  })
})
