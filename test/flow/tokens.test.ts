/** Tokens of one task, from outside: what a renewed one may do, how they are ended, what their holders can take from others, what they show. */
import { createHmac } from 'node:crypto'
import { createClient as connect } from '@rivulet/client'
import type { CreateTokenInput } from '@rivulet/contract/tokens'
import type { Task, Turn, Wait } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTestKeyring, pepper, type TestKeyring } from '../support/platform/keyring.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply, Reply } from '../support/platform/platform-client.ts'
import { createClient } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

const root = 'the-root-key-of-this-test'

let platform: Platform
let keyring: TestKeyring
let key: string
beforeAll(async () => {
  platform = await startPlatform({ apis: 2, env: { RIVULET_KEY: root, KEY_PEPPER: pepper, RIVULET_WORKER_KEY: root } })
  keyring = openTestKeyring(platform.databaseUrl)
  key = (await keyring.create({ tenant: 'acme', scopes: ['tasks:read', 'tasks:write'] })).key
})
afterAll(async () => {
  await keyring.close()
  await platform.close()
})

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const owner = (given = key) => connect({ url: platform.url, key: given }).tasks
const tokenFor = async (id: string, token: CreateTokenInput, given = key) => (await owner(given).get(id).createToken(token)).token
const codeOf = ({ status, body }: Reply) => [status, (body as ErrorReply).error?.code]

async function newTask(given = key): Promise<string> {
  const task = await owner(given).create({
    agent: 'echo',
    input: 'hello',
    params: { secret: 1 },
    metadata: { secret: 2 },
    name: crypto.randomUUID(),
  })
  await task.result()
  return task.id
}

function ask<T = unknown>(method: string, path: string, token: string, { body, headers, url = platform.url }: Ask = {}): Promise<Reply<T>> {
  const json = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
  return createClient(() => url).send<T>(method, path, { ...json, headers: { ...json.headers, ...bearer(token), ...headers } })
}

type Ask = { body?: object; headers?: Record<string, string>; url?: string }

const read = (id: string, token: string, url?: string) => ask('GET', `/v1/tasks/${id}`, token, { ...(url && { url }) })
const isRefused = async (id: string, token: string, url?: string) => (await read(id, token, url).catch(() => null))?.status === 401

async function watch(id: string, token: string, url = platform.url) {
  const response = await fetch(`${url}/v1/tasks/${id}/events?follow=true&token=${token}`)
  expect(response.status).toBe(200)
  let text = ''
  let hasEnded = false
  const ended = (async () => {
    const decoder = new TextDecoder()
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true })
  })()
    .catch(() => {})
    .finally(() => {
      hasEnded = true
    })
  await heard('caught_up')
  return { heard, ended, hasEnded: () => hasEnded, leave: () => void response.body?.cancel().catch(() => {}) }

  function heard(part: string): Promise<string> {
    return until(`the stream says ${part}`, () => text.includes(part) && text)
  }
}

test('a token that a stream hands out may read, and nothing else', async () => {
  const id = await newTask()
  const viewer = await watch(id, await tokenFor(id, { can: ['read', 'send', 'cancel'], ttlSeconds: 10 }))
  const [, fresh = ''] = /"token":"([^"]+)"/.exec(await viewer.heard('event: token')) ?? []
  viewer.leave()
  expect((await read(id, fresh)).status).toBe(200)
  expect(codeOf(await ask('POST', `/v1/tasks/${id}/turns`, fresh, { body: { input: 'more' } }))).toEqual([403, 'forbidden'])
  expect(codeOf(await ask('POST', `/v1/tasks/${id}/cancel`, fresh, { body: {} }))).toEqual([403, 'forbidden'])
})

describe('revoking tokens', () => {
  test('ends those of one subject, with their streams, in every process; the others and later ones stay', async () => {
    const [id, another] = [await newTask(), await newTask()]
    const mine = await tokenFor(id, { can: 'read', subject: 'anna' })
    const kept = [await tokenFor(id, { can: 'read', subject: 'ben' }), await tokenFor(id, { can: 'read' })]
    const elsewhere = await tokenFor(another, { can: 'read', subject: 'anna' })
    const cut = await Promise.all(platform.urls.map(url => watch(id, mine, url)))
    const others = await Promise.all([watch(id, kept[0] ?? ''), watch(id, kept[1] ?? ''), watch(another, elsewhere)])
    const since = performance.now()
    await owner().get(id).revokeTokens({ subject: 'anna' })
    expect(await isRefused(id, mine)).toBe(true)
    const later = await tokenFor(id, { can: 'read', subject: 'anna' })
    expect((await read(id, later)).status).toBe(200)
    await Promise.all(cut.map(({ ended }) => ended))
    expect(performance.now() - since).toBeLessThan(30_000)
    for (const url of platform.urls) {
      await until('the token is refused', () => isRefused(id, mine, url))
      for (const token of [...kept, later]) expect((await read(id, token, url)).status).toBe(200)
    }
    expect(others.map(({ hasEnded }) => hasEnded())).toEqual([false, false, false])
    for (const { leave } of others) leave()
  })

  test('without a subject ends all of the task', async () => {
    const id = await newTask()
    const tokens = [await tokenFor(id, { can: 'read', subject: 'anna' }), await tokenFor(id, { can: ['read', 'send'] })]
    await owner().get(id).revokeTokens()
    for (const token of tokens) expect(await isRefused(id, token)).toBe(true)
  })

  test.each(['', 'a'.repeat(201)])('of a subject of %j is refused', async subject => {
    const id = await newTask()
    expect(codeOf(await ask('DELETE', `/v1/tasks/${id}/tokens?subject=${subject}`, key))).toEqual([400, 'validation_failed'])
    expect(codeOf(await ask('POST', `/v1/tasks/${id}/tokens`, key, { body: { can: 'read', subject } }))).toEqual([400, 'validation_failed'])
  })

  test('a subject may be any text, as long as it is', async () => {
    const id = await newTask()
    for (const subject of ['anna & ben?', '\u0001'.repeat(200), '\u{1f600}'.repeat(100), 'é'.repeat(200)]) {
      const token = await tokenFor(id, { can: 'read', subject })
      expect((await read(id, token)).status).toBe(200)
      await owner().get(id).revokeTokens({ subject })
      expect(await isRefused(id, token)).toBe(true)
    }
  })
})

describe('an Idempotency-Key', () => {
  const send = (id: string, token: string, input: string, idempotencyKey: string) =>
    ask<{ turn: Turn }>('POST', `/v1/tasks/${id}/turns`, token, { body: { input }, headers: { 'idempotency-key': idempotencyKey } })
  const isReplay = ({ headers }: Reply) => headers.get('idempotent-replayed') === 'true'

  test('that the holder of a token has used is free for its back end, and for another subject', async () => {
    const id = await newTask()
    const once = crypto.randomUUID()
    const anna = await tokenFor(id, { can: 'send', subject: 'anna' })
    const ben = await tokenFor(id, { can: 'send', subject: 'ben' })
    const other = (await keyring.create({ tenant: 'acme', scopes: ['tasks:write'] })).key
    const replies = []
    for (const token of [anna, ben, await tokenFor(id, { can: 'send' }), key, other])
      replies.push(await send(id, token, token.slice(-8), once))
    expect(replies.map(reply => [reply.status, isReplay(reply)])).toEqual(Array(5).fill([202, false]))
    const again = await send(id, key, key.slice(-8), once)
    expect([again.body.turn.id, isReplay(again)]).toEqual([replies[3]?.body.turn.id, true])
  })

  test('is the same for the token that follows, of the same task and subject', async () => {
    const id = await newTask()
    for (const subject of [{ subject: 'anna' }, {}]) {
      const once = crypto.randomUUID()
      const first = await send(id, await tokenFor(id, { can: 'send', ...subject }), 'once', once)
      const again = await send(id, await tokenFor(id, { can: 'send', ...subject }), 'once', once)
      expect([again.body.turn.id, isReplay(again)]).toEqual([first.body.turn.id, true])
    }
  })
})

describe('a caller that may not read', () => {
  test('is not shown what it may not read: by its token, also where the answer is one that was given before', async () => {
    const id = await newTask()
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const cancel = (token: string) => ask<{ task: Task }>('POST', `/v1/tasks/${id}/cancel`, token, { body: {}, headers })
    const whole = await cancel(await tokenFor(id, { can: ['read', 'cancel'] }))
    expect(whole.body.task).toMatchObject({ params: { secret: 1 }, metadata: { secret: 2 }, name: expect.any(String) })
    const { params: _, metadata: __, name: ___, ...rest } = whole.body.task
    for (const right of ['cancel', ['cancel', 'send']] as const) {
      expect((await cancel(await tokenFor(id, { can: [right].flat() }))).body.task).toEqual({ ...rest, params: null, metadata: {} })
    }
    const sent = { input: 'secret input', params: { secret: 3 } }
    const send = (token: string) => ask<{ turn: Turn }>('POST', `/v1/tasks/${id}/turns`, token, { body: sent })
    expect((await send(await tokenFor(id, { can: ['read', 'send', 'params'] }))).body.turn).toMatchObject({ params: sent.params })
    const { turn } = (await send(await tokenFor(id, { can: ['send', 'params'] }))).body
    expect(turn).toMatchObject({ task: id, status: 'queued' })
    expect(JSON.stringify(turn)).not.toContain('secret')
  })

  test('is not shown it by a key either, and the client understands the answer', async () => {
    const id = await newTask()
    const { name = '' } = (await owner().get(id).detail()).task
    const writer = (await keyring.create({ tenant: 'acme', scopes: ['tasks:write'] })).key
    const task = await owner(writer).create({ agent: 'echo', name })
    expect([task.id, task.task.params, task.task.metadata]).toEqual([id, null, {}])
    expect(await task.cancel()).toMatchObject({ id, params: null, metadata: {} })
    expect(JSON.stringify(await task.send('secret'))).not.toContain('secret')
  })
})

describe('a token that was made with RIVULET_KEY', () => {
  const alone = { KEY_PEPPER: '', RIVULET_WORKER_KEY: '' }

  test('shows nothing of the key, is good in every process of the installation', async () => {
    const id = await newTask(root)
    const first = await platform.startApi({ env: alone })
    const made = await ask<{ token: string }>('POST', `/v1/tasks/${id}/tokens`, root, { body: { can: 'read' }, url: first.url })
    await first.kill('SIGTERM')
    const { token } = made.body
    const [payload = '', signature] = token.replace('rvt_', '').split('.')
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toMatchObject({ key: 'root' })
    const guessed = createHmac('sha256', createHmac('sha256', root).update('task tokens').digest()).update(payload).digest('base64url')
    expect(signature).not.toBe(guessed)
    const later = await platform.startApi({ env: alone })
    expect((await read(id, token, later.url)).status).toBe(200)
    await later.kill('SIGTERM')
  })
})

test('a key and its token outlive a new pepper that replaces theirs, and a token of RIVULET_KEY ends with that key', async () => {
  const own = (await keyring.create({ tenant: 'acme', scopes: ['tasks:read', 'tasks:write'] })).key
  const id = await newTask(own)
  const [token, ofRoot] = [await tokenFor(id, { can: 'read' }, own), await tokenFor(await newTask(root), { can: 'read' }, root)]
  const rotated = { KEY_PEPPER: 'a pepper that replaces the one of this test', KEY_PEPPER_OLD: pepper }
  const changed = await platform.startApi({ env: { ...rotated, RIVULET_KEY: `${root}-of-tomorrow` } })
  const statusFor = async (bearer: string) => (await read(id, bearer, changed.url)).status
  expect([await statusFor(own), await statusFor(token), await statusFor(ofRoot)]).toEqual([200, 200, 401])
  await changed.kill('SIGTERM')
})

describe('a token for one wait', () => {
  test('closes that wait and no other, until it expires, with its subject as the person', async () => {
    const steps = ['first', 'second'].map(name => ({ ask: { name, holdMs: 0 } }))
    const task = await owner().create({ agent: 'scripted', params: { steps } })
    const other = await owner().create({ agent: 'scripted', params: { steps } })
    const [first, foreign] = await Promise.all([openWait(task.id, 'first'), openWait(other.id, 'first')])
    const accept = (id: string, wait: string, token: string) =>
      ask<{ wait: Wait }>('POST', `/v1/tasks/${id}/waits/${wait}/answer`, token, { body: { action: 'accept' } })

    const token = await tokenFor(task.id, { can: ['answer'], wait: first, subject: 'ada' })
    const short = await tokenFor(task.id, { can: ['answer'], wait: first, ttlSeconds: 5 })
    const shortAt = performance.now()
    expect((await ask('GET', `/v1/tasks/${task.id}/waits/${first}`, token)).status).toBe(200)
    expect(codeOf(await read(task.id, token))).toEqual([403, 'forbidden'])
    expect(codeOf(await ask('POST', `/v1/tasks/${task.id}/signals`, token, { body: { name: 'x', data: 1 } }))).toEqual([403, 'forbidden'])
    expect(codeOf(await accept(other.id, foreign, token))).toEqual([403, 'forbidden'])
    expect(codeOf(await accept(task.id, first, await tokenFor(task.id, { can: 'read' })))).toEqual([403, 'forbidden'])
    expect((await accept(task.id, first, token)).body.wait).toMatchObject({ status: 'answered', answer: { action: 'accept', by: 'ada' } })

    const second = await openWait(task.id, 'second')
    expect(codeOf(await accept(task.id, second, token))).toEqual([403, 'forbidden'])
    await until('the short token has expired', () => performance.now() - shortAt > 6_000)
    expect(codeOf(await accept(task.id, first, short))).toEqual([401, 'unauthorized'])
    const any = await tokenFor(task.id, { can: ['answer'], subject: 'ben' })
    expect((await accept(task.id, second, any)).body.wait.answer?.by).toBe('ben')
    await task.result()
    const { turns } = await owner().get(task.id).detail()
    expect(turns[0]?.waits).toMatchObject([{ answer: { by: 'ada' } }, { answer: { by: 'ben' } }])
  })

  function openWait(id: string, name: string): Promise<string> {
    return until(`${name} is asked`, async () => (await owner().get(id).waits()).find(wait => wait.name === name)?.id)
  }
})
