/**
 * The public protocol of workers, spoken as another language would: plain HTTP and JSON. Two API processes take the calls of one turn by turns, so whatever a
 * process remembers of a turn has to be in Redis and Postgres, too.
 */
import { randomUUID } from 'node:crypto'
import type { ClaimedTurn, WorkerAppended } from '@rivulet/contract/worker'
import { delta, done, full, start, type Turn, text, type Update } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import { createClient, type ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 0, env: { ...shortLease, LEASE_MS: '60000' } })
})
afterAll(() => platform.close())

type Held = { turn: string; claim: string; epoch: number }
type Place = { result: string; next?: number; epoch?: number }

const plain = text('')

function call<T>(path: string, body: object, api = 0) {
  return createClient(() => platform.urls[api] ?? '').post<T>(`/worker/v1/${path}`, body)
}

async function ask<T>(path: string, body: object, api = 0): Promise<T> {
  const reply = await call<T>(path, body, api)
  expect([path, reply.status, reply.body]).toEqual([path, 200, expect.anything()])
  return reply.body
}

/** A worker of its own agent, so that tests do not claim each other's turns. */
async function newWorker(settings: object = {}) {
  const agent = `agent-${randomUUID()}`
  const worker = randomUUID()
  const greeting = { protocol: 1, worker, slots: 10, agents: [{ name: agent, description: '', ...settings }] }
  await ask('hello', greeting)
  const claimAll = async (more: object = {}, api = 0) =>
    (await ask<{ turns: ClaimedTurn[] }>('claim', { worker, agents: [agent], waitMs: 5_000, ...more }, api)).turns
  const claim = (api = 0) =>
    until('a turn is claimed', async () => {
      const [turn] = await claimAll({}, api)
      return turn
    })
  const begin = async (input: object = { input: 'hello' }) => {
    const { task } = await platform.client.createTask({ agent, ...input })
    return { task: task.id, turn: await claim() }
  }
  return { agent, worker, claim, claimAll, begin }
}

const heldOf = ({ turn, claim, epoch }: Held): Held => ({ turn, claim, epoch })

async function append(turn: Held, first: number, updates: unknown[], api = 0): Promise<WorkerAppended> {
  const { results } = await ask<{ results: WorkerAppended[] }>('append', { appends: [{ ...heldOf(turn), first, updates }] }, api)
  expect(results).toHaveLength(1)
  return results[0] as WorkerAppended
}

const finish = (turn: Held, last: number, more: object = {}, api = 0) =>
  ask<Place>('finish', { ...heldOf(turn), last, status: 'completed', ...more }, api)

const textsOf = async (task: string) =>
  (await platform.client.messages(task)).flatMap(({ content, author }) => (author === 'agent' && 'text' in content ? [content.text] : []))

describe('hello', () => {
  test('returns the version, the lease and the limits', async () => {
    const greeting = { protocol: 1, worker: randomUUID(), agents: [] }
    expect(await ask('hello', greeting)).toMatchObject({ protocol: 1, leaseMs: 60_000, limits: { bodyBytes: 2 * 1024 * 1024 } })
  })

  test('rejects a version that the server does not speak, whatever else it has, and names those that it does', async () => {
    const reply = await call<ErrorReply>('hello', { protocol: 7, fields: 'of the future' })
    expect([reply.status, reply.body.error.code, reply.body.error.message]).toEqual([
      426,
      'unsupported_version',
      expect.stringContaining('1'),
    ])
    expect(reply.headers.get('upgrade')).toBe('rivulet-worker/1')
  })
})

describe('claim', () => {
  test('returns a whole turn, and no more than it may', async () => {
    const { agent, claimAll, begin } = await newWorker()
    const { task, turn } = await begin({ input: 'hello', params: { tone: 'dry' } })
    expect(turn).toMatchObject({
      agent,
      number: 1,
      attempt: 1,
      params: { tone: 'dry' },
      history: { before: 1 },
      kept: [],
      steps: [],
      waits: [],
    })
    expect(turn.inputs.map(({ content }) => content)).toEqual([text('hello')])
    expect(turn.task.id).toBe(task)
    for (let i = 0; i < 3; i += 1) await platform.client.createTask({ agent, input: String(i) })
    const claimed: ClaimedTurn[] = []
    const more = await until('three turns are claimed', async () => {
      const turns = await claimAll({ max: 2 })
      expect(turns.length).toBeLessThanOrEqual(2)
      claimed.push(...turns)
      return claimed.length === 3 && claimed
    })
    expect(new Set(more.map(({ claim }) => claim)).size).toBe(3)
    expect(await claimAll({ waitMs: 0 })).toEqual([])
  })

  test('without a time to wait returns a turn that is queued', async () => {
    const { agent, claimAll } = await newWorker()
    const { task } = await platform.client.createTask({ agent, input: 'hello' })
    const turns = await claimAll({ waitMs: undefined })
    expect(turns.map(turn => turn.task.id)).toEqual([task.id])
  })

  test('that is repeated returns the same turns, from either process', async () => {
    const { claimAll, begin, agent } = await newWorker()
    await begin()
    const { task } = await platform.client.createTask({ agent, input: 'hello' })
    const named = { claimId: randomUUID(), max: 5 }
    const first = await until('a turn is claimed', async () => {
      const turns = await claimAll(named)
      return turns.length > 0 && turns
    })
    expect(first).toMatchObject([{ claim: named.claimId, attempt: 1 }])
    expect(first.map(turn => turn.task.id)).toEqual([task.id])
    const placeOf = ({ turn, claim, epoch, attempt }: ClaimedTurn) => ({ turn, claim, epoch, attempt })
    for (const api of [1, 0]) expect((await claimAll(named, api)).map(placeOf)).toEqual(first.map(placeOf))
    const [turn] = first as [ClaimedTurn]
    expect(await append(turn, 1, [full(0, 'once')])).toEqual({ result: 'ok', next: 2 })
    expect((await finish(turn, 1)).result).toBe('committed')
    expect(await claimAll({ ...named, waitMs: 0 })).toEqual([])
  })

  test('rejects agents that no hello has announced', async () => {
    const reply = await call<ErrorReply>('claim', { worker: 'w', agents: ['never-announced'] })
    expect([reply.status, reply.body.error.code]).toEqual([422, 'unknown_agent'])
  })
})

describe('updates', () => {
  test('are composed to the same log as that of a worker that composes its own, whichever process takes them', async () => {
    const updates: Update[] = [
      start(0, plain, { part: 1 }),
      delta(0, 'one '),
      delta(0, 'two 😀'),
      done(0, { usage: { inputTokens: 2, outputTokens: 3 }, response: { id: 'r', model: 'm' } }),
      full(1, 'whole'),
      start(2, { type: 'tool_request', callId: 'c', name: 'look', arguments: {} }),
      { type: 'delta', index: 2, delta: { type: 'tool_request', text: '{"a":' } },
      { type: 'delta', index: 2, delta: { type: 'tool_request', text: '1}' } },
      done(2),
      { type: 'custom', name: 'note', data: { n: 1 } },
      start(3, plain),
      delta(3, 'left open'),
    ]
    const own = defineAgent(`own-${randomUUID()}`, async function* () {
      yield* updates
    })
    await startOwnWorker(platform, [{ ...own, deltas: 'each' }])
    const expected = await platform.client.finishedTask({ agent: own.name, input: 'hello' })
    const { begin } = await newWorker()
    const { task, turn } = await begin()
    for (const [i, update] of updates.entries()) expect(await append(turn, i + 1, [update], i % 2)).toEqual({ result: 'ok', next: i + 2 })
    expect(await finish(turn, updates.length, {}, 1)).toEqual({ result: 'committed' })
    const end = await platform.client.waitForEnd(task)
    const eventsOf = async (id: string) =>
      (await platform.log(id)).map(({ event: { task: _, at: __, ...event } }) =>
        'inputs' in event || 'input' in event || event.type === 'turn.finished' ? { type: event.type } : event,
      )
    expect(await eventsOf(task)).toEqual(await eventsOf(expected.task.id))
    const turnOf = ({ status, stopReason, usage }: Turn) => ({
      status,
      stopReason,
      usage,
    })
    expect(end.turns.map(turnOf)).toEqual(expected.turns.map(turnOf))
    expect(await faultsOf(platform, task)).toEqual([])
  })

  test('that are sent again are written once, to either process, and of a longer batch only what is new', async () => {
    const { begin } = await newWorker()
    const { task, turn } = await begin()
    const updates = [start(0, plain), delta(0, 'a'), delta(0, 'b')]
    expect(await append(turn, 1, updates.slice(0, 2))).toEqual({ result: 'ok', next: 3 })
    for (const api of [0, 1]) expect(await append(turn, 1, updates.slice(0, 2), api)).toEqual({ result: 'duplicate', next: 3 })
    expect(await append(turn, 1, updates, 1)).toEqual({ result: 'ok', next: 4 })
    expect(await append(turn, 9, [delta(0, 'c')])).toEqual({ result: 'gap', next: 4 })
    expect(await append(turn, 4, [])).toEqual({ result: 'ok', next: 4 })
    expect((await finish(turn, 3)).result).toBe('committed')
    expect((await finish(turn, 3, {}, 1)).result).toBe('already')
    expect(await textsOf(task)).toEqual(['ab'])
    expect(await append(turn, 4, [delta(0, 'late')])).toMatchObject({ result: 'fenced' })
  })

  test('that two calls send at the same time are written once', async () => {
    const { begin } = await newWorker()
    const { task, turn } = await begin()
    const updates = [start(0, plain), delta(0, 'once'), done(0)]
    const results = await Promise.all([0, 1, 0, 1].map(api => append(turn, 1, updates, api)))
    expect(results.map(({ result }) => result).sort()).toEqual(['duplicate', 'duplicate', 'duplicate', 'ok'])
    await finish(turn, 3)
    expect(await textsOf(task)).toEqual(['once'])
  })

  test.each<[string, unknown[], string, RegExp]>([
    ['a closed message', [delta(0, 'more')], 'message_closed', /closed; send a start with the next index/],
    ['a message that was never started', [delta(1, 'more')], 'message_not_started', /send its start first/],
    ['an index that is not the next one', [start(5, plain)], 'index_out_of_order', /must have index 1/],
    [
      'a delta of another type',
      [start(1, plain), { type: 'delta', index: 1, delta: { type: 'data', value: 1 } }],
      'delta_type_mismatch',
      /type/,
    ],
    ['no known type', [{ type: 'shout', index: 1 }], 'bad_event', /start, delta, full/],
    ['a version of the state that is not the next one', [{ type: 'state', version: 7, value: 1 }], 'bad_event', /is 1/],
  ])('for %s are refused with the fix, and nothing of their batch is written', async (_, bad, code, message) => {
    const { begin } = await newWorker()
    const { task, turn } = await begin()
    await append(turn, 1, [full(0, 'first')])
    const before = await platform.log(task)
    const refused = await append(turn, 2, [start(1, plain), ...bad.map(shifted)].slice(code === 'index_out_of_order' ? 1 : 0), 1)
    expect(refused).toMatchObject({ result: 'invalid', next: 2, error: { code, message: expect.stringMatching(message) } })
    expect(await platform.log(task)).toEqual(before)
    expect(await append(turn, 2, [full(1, 'second')])).toEqual({ result: 'ok', next: 3 })
  })

  /** The batch has a good update before the bad one, so that it shows that none of it is written. */
  function shifted(update: unknown): unknown {
    const { index, type, ...rest } = update as { type: string; index?: number }
    return index === undefined || index === 0 || index === 5 ? update : { ...rest, type, index: index + 1 }
  }

  test('of a batch are written for the turns that the worker holds, whatever the others are', async () => {
    const { begin } = await newWorker()
    const [one, other] = [await begin(), await begin()]
    const foreign = { ...heldOf(one.turn), claim: randomUUID() }
    const { results } = await ask<{ results: WorkerAppended[] }>('append', {
      appends: [
        { ...foreign, first: 1, updates: [full(0, 'foreign')] },
        { ...heldOf(other.turn), first: 1, updates: [full(0, 'own')] },
      ],
    })
    expect(results).toEqual([
      { result: 'fenced', next: 1 },
      { result: 'ok', next: 2 },
    ])
  })

  test('of two batches of one turn in a call are rejected', async () => {
    const { begin } = await newWorker()
    const { turn } = await begin()
    const appends = [1, 2].map(first => ({ ...heldOf(turn), first, updates: [full(first - 1, 'twice')] }))
    const reply = await call<ErrorReply>('append', { appends })
    expect([reply.status, reply.body.error.code]).toEqual([400, 'validation_failed'])
  })

  test.each([-1, null, '0', 0.5, undefined])('at the index %j of a turn that kept a message are refused', async index => {
    const { begin, claim } = await newWorker()
    const { task, turn } = await begin()
    await append(turn, 1, [full(0, 'May I?')])
    const wanted = { name: 'go', kind: 'approval', title: 'May I?', actions: ['accept'], metadata: {}, expires: { inMs: 600_000 } }
    const asked = await ask<{ waits: { id: string }[] }>('ask', { ...heldOf(turn), waits: [wanted] })
    await ask<Place>('park', { ...heldOf(turn), last: 1 })
    await createClient(() => platform.url).post(`/v1/tasks/${task}/waits/${asked.waits[0]?.id}/answer`, { action: 'accept' })
    const resumed = await claim()
    for (const update of [
      { ...delta(0, 'more'), index },
      { ...done(0), index },
      { ...full(0, 'x'), index },
    ])
      expect(await append(resumed, 1, [update])).toMatchObject({ result: 'invalid', next: 1, at: 1, error: { code: 'bad_event' } })
    expect(await append(resumed, 1, [{ ...delta(0, 'more'), delta: 'no delta' }])).toMatchObject({ result: 'invalid' })
    expect(await append(resumed, 1, [full(0, 'May I?'), full(1, 'Thanks')])).toEqual({ result: 'ok', next: 3 })
  })

  test('that end in half a character are rejected with the place', async () => {
    const { begin } = await newWorker()
    const { turn } = await begin()
    const reply = await call<ErrorReply>('append', {
      appends: [{ ...heldOf(turn), first: 1, updates: [start(0, plain), delta(0, '\ud83d')] }],
    })
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_characters'])
    expect(JSON.stringify(reply.body.error.details)).toContain('/appends/0/updates/1/delta/text')
  })

  test('that are not UTF-8 are rejected', async () => {
    const { begin } = await newWorker()
    const { turn } = await begin()
    const body = Buffer.from(JSON.stringify({ appends: [{ ...heldOf(turn), first: 1, updates: [full(0, 'ÿ')] }] }), 'latin1')
    const response = await fetch(`${platform.url}/worker/v1/append`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect([response.status, ((await response.json()) as ErrorReply).error.code]).toEqual([400, 'invalid_utf8'])
  })

  test('of the state are kept, and one that the log has is dropped', async () => {
    const { begin } = await newWorker()
    const { task, turn } = await begin()
    expect(await append(turn, 1, [{ type: 'state', version: 1, value: { a: 1 } }])).toMatchObject({ result: 'ok' })
    expect(await append(turn, 2, [{ type: 'state', version: 1, value: 'again' }], 1)).toMatchObject({ result: 'ok' })
    expect(await append(turn, 3, [{ type: 'state', version: 2, patch: { b: 2 } }], 1)).toMatchObject({ result: 'ok', next: 4 })
    await finish(turn, 3)
    expect((await platform.client.detail(task)).state).toEqual({ version: 2, value: { a: 1, b: 2 } })
  })
})

describe('a worker that loses its turn', () => {
  test('is fenced by the next claim, which begins a new epoch', async () => {
    const { begin, claim } = await newWorker()
    const { task, turn } = await begin()
    await append(turn, 1, [start(0, plain), delta(0, 'lost')])
    expect(await ask('release', heldOf(turn), 1)).toEqual({ result: 'released' })
    const next = await claim(1)
    expect(next.epoch).toBeGreaterThan(turn.epoch)
    for (const api of [0, 1]) expect(await append(turn, 3, [delta(0, '!')], api)).toMatchObject({ result: 'fenced' })
    expect(await append({ ...turn, epoch: next.epoch }, 1, [full(0, 'guess')])).toMatchObject({ result: 'fenced' })
    expect((await finish(turn, 2)).result).toBe('superseded')
    expect(await append(next, 1, [full(0, 'found')], 1)).toEqual({ result: 'ok', next: 2 })
    await finish(next, 1)
    expect(await textsOf(task)).toEqual(['found'])
    expect(await faultsOf(platform, task)).toEqual([])
  })

  test('learns from its heartbeat that the turn was canceled, at once', async () => {
    const { begin, worker } = await newWorker()
    const { task, turn } = await begin()
    const beat = (waitMs: number) => ask<{ lost: string[]; canceled: string[] }>('heartbeat', { worker, turns: [heldOf(turn)], waitMs })
    expect(await beat(0)).toEqual({ lost: [], canceled: [], answered: [] })
    const waiting = beat(10_000)
    waiting.catch(() => {})
    await platform.client.cancel(task)
    expect(await waiting).toEqual({ lost: [turn.turn], canceled: [turn.turn], answered: [] })
  })
})

test('a log that lost its entries is reopened: the worker goes on from number 1 in a new epoch', async () => {
  const { begin } = await newWorker()
  const { task, turn } = await begin()
  const updates = [start(0, plain), delta(0, 'one '), delta(0, 'two')]
  await append(turn, 1, updates.slice(0, 2))
  await platform.redis.del(platform.keys.stream(task), platform.keys.state(task))
  const lost = await append(turn, 3, updates.slice(2), 1)
  expect(lost).toMatchObject({ result: 'gap', next: 1, epoch: expect.any(Number) })
  const moved = { ...turn, epoch: lost.epoch ?? 0 }
  expect(moved.epoch).toBeGreaterThan(turn.epoch)
  // The reply may have been lost: the old epoch learns the same again.
  expect(await append(turn, 3, updates.slice(2))).toEqual({ result: 'gap', next: 1, epoch: moved.epoch })
  expect(await append(moved, 1, updates)).toEqual({ result: 'ok', next: 4 })
  expect((await finish(moved, 3)).result).toBe('committed')
  expect(await textsOf(task)).toEqual(['one two'])
})

test('a finish that names more updates than the log has is a gap', async () => {
  const { begin } = await newWorker()
  const { task, turn } = await begin()
  await append(turn, 1, [full(0, 'one')])
  expect(await finish(turn, 2)).toEqual({ result: 'gap', next: 2, epoch: turn.epoch })
  await append(turn, 2, [full(1, 'two')])
  expect((await finish(turn, 2)).result).toBe('committed')
  expect(await textsOf(task)).toEqual(['one', 'two'])
})

test('a failed attempt is tried again with the steps that it has finished', async () => {
  const { begin, claim } = await newWorker()
  const { task, turn } = await begin()
  const step = { turn: turn.turn, claim: turn.claim, name: 'draft', result: { words: 3 } }
  expect(await ask('step', step)).toEqual({ result: 'remembered', isOverBudget: false })
  expect((await finish(turn, 0, { status: 'failed', error: { code: 'agent_error', message: 'no' } })).result).toBe('retrying')
  const again = await claim(1)
  expect(again).toMatchObject({ attempt: 2, steps: [{ name: 'draft', result: { words: 3 }, messages: [] }] })
  await append(again, 1, [full(0, 'done')])
  await finish(again, 1)
  expect(await textsOf(task)).toEqual(['done'])
})

test('a turn parks until its wait is answered, and its kept messages are not written again', async () => {
  const { begin, claim } = await newWorker()
  const { task, turn } = await begin()
  await append(turn, 1, [full(0, 'May I?')])
  const wanted = { name: 'go', kind: 'approval', title: 'May I?', actions: ['accept'], metadata: {}, expires: { inMs: 600_000 } }
  const asked = await ask<{ waits: { id: string }[] }>('ask', { ...heldOf(turn), waits: [wanted] }, 1)
  expect(asked).toMatchObject({ result: 'asked', isInLog: true, waits: [{ name: 'go', status: 'open' }] })
  await append(turn, 2, [start(1, plain)])
  expect((await ask<Place>('park', { ...heldOf(turn), last: 2 }, 1)).result).toBe('open_message')
  await append(turn, 3, [done(1)])
  expect((await ask<Place>('park', { ...heldOf(turn), last: 3 }, 1)).result).toBe('parked')
  const answer = await createClient(() => platform.url).post(`/v1/tasks/${task}/waits/${asked.waits[0]?.id}/answer`, { action: 'accept' })
  expect(answer.status).toBe(200)
  const resumed = await claim(1)
  expect(resumed.kept).toHaveLength(2)
  expect(resumed.waits).toMatchObject([{ name: 'go', status: 'answered' }])
  expect(await append(resumed, 1, [full(0, 'May I?'), start(1, plain), done(1), full(2, 'Thanks')])).toEqual({ result: 'ok', next: 5 })
  await finish(resumed, 4, {}, 1)
  expect(await textsOf(task)).toEqual(['May I?', '', 'Thanks'])
  expect(await faultsOf(platform, task)).toEqual([])
})

test('an input that came meanwhile joins the turn', async () => {
  const { begin } = await newWorker()
  const { task, turn } = await begin()
  await platform.client.addTurn(task, { input: 'and this', ifBusy: 'inject' })
  const { joined } = await ask<{ joined: { turn: number; inputs: unknown[] }[] }>('take', { ...heldOf(turn), after: 1 })
  expect(joined).toMatchObject([{ turn: 2, inputs: [text('and this')] }])
  const [{ turn: number, inputs }] = joined as [{ turn: number; inputs: unknown[] }]
  expect(await append(turn, 1, [{ type: 'join', turn: number, inputs }, full(1, 'both')], 1)).toEqual({ result: 'ok', next: 3 })
  expect((await finish(turn, 2)).result).toBe('committed')
  expect((await platform.client.waitForEnd(task)).turns).toMatchObject([{ status: 'completed' }, { joinedTo: 1 }])
})

test('processes that take the appends of a turn in turns each read what the other has written, joined inputs included', async () => {
  const { begin } = await newWorker()
  const { task, turn } = await begin()
  await platform.client.addTurn(task, { input: 'and this', ifBusy: 'inject' })
  const { joined } = await ask<{ joined: { turn: number; inputs: unknown[] }[] }>('take', { ...heldOf(turn), after: 1 })
  const [{ turn: number, inputs }] = joined as [{ turn: number; inputs: unknown[] }]
  const batches = [
    [{ type: 'join', turn: number, inputs }, start(1, plain)],
    ...['a', 'b', 'c', 'd', 'e'].map(letter => [delta(1, letter)]),
    [{ type: 'state', version: 1, value: { a: 1 } }, delta(1, 'f')],
    [{ type: 'state', version: 2, patch: { b: 2 } }, delta(1, 'g')],
    [delta(1, 'h'), done(1)],
  ]
  const last = await appendByTurns(turn, batches)
  expect((await finish(turn, last)).result).toBe('committed')
  expect(await textsOf(task)).toEqual(['abcdefgh'])
  expect((await platform.client.detail(task)).state).toEqual({ version: 2, value: { a: 1, b: 2 } })
  expect(await faultsOf(platform, task)).toEqual([])
})

test('processes that take the appends of a turn in turns do so for one that has parked and whose log was lost', async () => {
  const { begin, claim } = await newWorker()
  const { task, turn } = await begin()
  await append(turn, 1, [full(0, 'May I?'), { type: 'state', version: 1, value: { a: 1 } }])
  const wanted = { name: 'go', kind: 'approval', title: 'May I?', actions: ['accept'], metadata: {}, expires: { inMs: 600_000 } }
  const asked = await ask<{ waits: { id: string }[] }>('ask', { ...heldOf(turn), waits: [wanted] })
  expect((await ask<Place>('park', { ...heldOf(turn), last: 2 })).result).toBe('parked')
  await createClient(() => platform.url).post(`/v1/tasks/${task}/waits/${asked.waits[0]?.id}/answer`, { action: 'accept' })
  const resumed = await claim()
  await append(resumed, 1, [start(1, plain)])
  await platform.redis.del(platform.keys.stream(task), platform.keys.state(task))
  const lost = await append(resumed, 2, [delta(1, 'lost')], 1)
  expect(lost).toMatchObject({ result: 'gap', next: 1, epoch: expect.any(Number) })
  const moved = { ...resumed, epoch: lost.epoch ?? 0 }
  const batches = [
    [full(0, 'May I?'), start(1, plain), delta(1, 'a')],
    ...['b', 'c', 'd'].map(letter => [delta(1, letter)]),
    [{ type: 'state', version: 1, value: 'again' }, delta(1, 'e')],
    [{ type: 'state', version: 2, patch: { b: 2 } }, delta(1, 'f')],
    [delta(1, 'g')],
  ]
  const last = await appendByTurns(moved, batches)
  expect((await finish(moved, last)).result).toBe('committed')
  expect(await textsOf(task)).toEqual(['May I?', 'abcdefg'])
  expect((await platform.client.detail(task)).state).toEqual({ version: 2, value: { a: 1, b: 2 } })
  expect(await faultsOf(platform, task)).toEqual([])
})

/** The first batch goes to the first process, the next one to the second. Returns the number of the last update. */
async function appendByTurns(turn: Held, batches: unknown[][]): Promise<number> {
  let next = 1
  for (const [i, updates] of batches.entries()) {
    expect([i, await append(turn, next, updates, i % 2)]).toEqual([i, { result: 'ok', next: next + updates.length }])
    next += updates.length
  }
  return next - 1
}

test('a child runs, and its messages can be read by its name', async () => {
  const { begin, agent, claim } = await newWorker()
  const { turn } = await begin()
  const children = [{ name: 'one', agent, input: 'go', detached: false, onParentEnd: 'cancel' }]
  const spawned = await ask('spawn', { turn: turn.turn, claim: turn.claim, children })
  expect(spawned).toMatchObject({ result: 'spawned', isInLog: true, children: [{ name: 'one', task: expect.any(String) }] })
  const child = await claim()
  await append(child, 1, [full(0, 'from the child')])
  await finish(child, 1)
  const read = await get('history?child=one', turn)
  expect(read).toMatchObject({ data: [{ author: 'user' }, { content: text('from the child') }] })
})

test('history, waits and files are read with the claim in the headers', async () => {
  const { begin, agent, claim } = await newWorker()
  const first = await begin()
  await append(first.turn, 1, [full(0, 'answer')])
  await finish(first.turn, 1)
  await platform.client.addTurn(first.task, { input: 'again' })
  const turn = await claim(1)
  expect(turn.agent).toBe(agent)
  await append(turn, 1, [full(0, 'not history')])
  expect(await get('history', turn)).toMatchObject({
    data: [{ content: text('hello') }, { content: text('answer') }, { content: text('again') }],
    nextCursor: null,
  })
  expect(await get('waits', turn)).toEqual({ waits: [] })
  const headers = headersOf(turn)
  const stored = await fetch(`${platform.url}/worker/v1/files`, {
    ...{ method: 'POST', body: 'bytes' },
    headers: { ...headers, 'content-type': 'text/plain' },
  })
  const { file } = (await stored.json()) as { file: { id: string } }
  const read = await fetch(`${platform.url}/worker/v1/files/${file.id}`, { headers })
  expect([stored.status, await read.text()]).toEqual([200, 'bytes'])
  const foreign = { ...headers, 'x-claim-id': randomUUID() }
  for (const path of ['history', 'waits', `files/${file.id}`])
    expect([path, (await fetch(`${platform.url}/worker/v1/${path}`, { headers: foreign })).status]).toEqual([path, 404])
})

test('a worker that has left a claim gets no turn by it', async () => {
  const { agent, worker, claim } = await newWorker()
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const body = JSON.stringify({ worker, agents: [agent], max: 2, waitMs: 10_000 })
  const headers = { 'content-type': 'application/json' }
  const gone = fetch(`${platform.url}/worker/v1/claim`, { method: 'POST', headers, body, signal: leaving.signal })
  gone.catch(() => {})
  leaving.abort()
  await gone.catch(() => {})
  const { task } = await platform.client.createTask({ agent, input: 'hello' })
  const turn = await claim(1)
  expect([turn.task.id, turn.attempt]).toEqual([task.id, 1])
})

test('a claim whose worker leaves before the reply is released', async () => {
  const { agent, worker, claim } = await newWorker()
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const body = JSON.stringify({ worker, agents: [agent], max: 2, waitMs: 10_000 })
  const headers = { 'content-type': 'application/json' }
  const gone = fetch(`${platform.url}/worker/v1/claim`, { method: 'POST', headers, body, signal: leaving.signal })
  gone.catch(() => {})
  // The budget is read after the claim is committed, and waits for this lock.
  const holder = await platform.pg.connect()
  try {
    await holder.query('begin')
    await holder.query('lock table usage in access exclusive mode')
    const { task } = await platform.client.createTask({ agent, input: 'hello', budget: { tokens: 1_000 } })
    await until('the turn is claimed', async () => {
      const { rows } = await platform.pg.query('select status from turns where task = $1', [task.id])
      return rows[0]?.status === 'running'
    })
    leaving.abort()
    // A reply of the same process, so that it has noticed the closed connection.
    await fetch(`${platform.url}/healthz`)
  } finally {
    await holder.query('rollback')
    holder.release()
  }
  const turn = await claim(1)
  expect([turn.agent, turn.attempt]).toEqual([agent, 1])
})

test('the protocol has a description of its own', async () => {
  const { body } = await platform.client.get<{ paths: Record<string, object> }>('/worker/v1/openapi.json')
  const paths = Object.keys(body.paths)
  expect(paths).toContain('/worker/v1/append')
  expect(paths.every(path => path.startsWith('/worker/v1/'))).toBe(true)
  expect(JSON.stringify(body.paths['/worker/v1/append'])).toContain('"join"')
})

const headersOf = ({ turn, claim }: Held) => ({ 'x-turn-id': turn, 'x-claim-id': claim })

async function get(path: string, turn: Held): Promise<unknown> {
  const response = await fetch(`${platform.url}/worker/v1/${path}`, { headers: headersOf(turn) })
  expect(response.status).toBe(200)
  return response.json()
}
