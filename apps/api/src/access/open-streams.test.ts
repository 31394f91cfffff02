/** Streams by the clock: how many, until when, and with which token. The clock is driven by hand. */
import type { TokenEvent } from '@rivulet/protocol'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { KeyCheck } from './key-check.ts'
import { createOpenStreams } from './open-streams.ts'
import { localCaller, type Principal } from './principal.ts'
import { createTaskTokens, type TokenRequest } from './task-token.ts'
import type { TokenRevocations } from './token-revocations.ts'
import type { SigningKeys } from './token-signing.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const passSeconds = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1_000)
const principalOf = (key: string): Principal => ({ tenant: 'acme', scopes: ['tasks:read'], key, expiresAt: null, isRoot: false })
const signingKeys: SigningKeys = { root: [Buffer.from('root')], stored: [Buffer.from('stored')] }
const tokens = createTaskTokens(
  () => signingKeys,
  () => Date.now(),
)
const holder = (request: Partial<TokenRequest> = {}): Principal => ({
  ...principalOf('a'),
  token: tokens.issue({
    ...{ tenant: 'acme', task: 'one', can: ['read'], key: 'a', subject: null, startedAt: Date.now(), ttlSeconds: 60, until: null },
    ...request,
  }).claims,
})

function open({ perToken = 9, perTask = 9, perKey = 2, perTenant = 9, perProcess = 9 } = {}) {
  /** Ids of keys, and subjects of tokens. */
  const revoked = new Set<string>()
  const stillLive = vi.fn(async (ids: readonly string[]) => new Set(ids.filter(id => !revoked.has(id))))
  const keys = { stillLive } as Pick<KeyCheck, 'stillLive'> as KeyCheck
  const revokedAmong: TokenRevocations['revokedAmong'] = async claims =>
    new Set(claims.filter(({ subject }) => subject && revoked.has(subject)))
  const revocations = { revokedAmong } as Pick<TokenRevocations, 'revokedAmong'> as TokenRevocations
  const errors: unknown[] = []
  const rejections: string[] = []
  const cuts: unknown[] = []
  const streams = createOpenStreams({
    ...{ keys, tokens, revocations, limits: { perToken, perTask, perKey, perTenant, perProcess } },
    tasksWithin: async (_, tasks) => new Set(tasks),
    onLimit: setting => rejections.push(setting),
    onCut: (whose, count) => cuts.push([whose, count]),
    onError: error => errors.push(error),
  })
  onTestFinished(streams.close)
  return { streams, revoked, stillLive, errors, rejections, cuts, watch }

  function watch(principal: Principal, { isFull = () => false, task = 'one' }: { isFull?: () => boolean; task?: string } = {}) {
    const admission = streams.admit(principal, [task])
    const sentTokens: TokenEvent[] = []
    const leave = vi.fn(() => admission.over())
    admission.opened({ leave, sendToken: event => !isFull() && sentTokens.push(event) > 0 })
    return { ...admission, leave, sentTokens }
  }
}

describe('how many', () => {
  const refusedBy = (setting: string) =>
    expect.objectContaining({
      code: 'too_many_streams',
      message: expect.stringMatching(`^A .* open streams \\(${setting}\\)$`),
    })

  test('a key may have so many, and another key as many; a stream that closes makes room, once', () => {
    const { watch } = open()
    const first = watch(principalOf('a'))
    watch(principalOf('a'))
    expect(() => watch(principalOf('a'))).toThrow(
      expect.objectContaining({ code: 'too_many_streams', message: expect.stringContaining('MAX_STREAMS_PER_KEY') }),
    )
    watch(principalOf('b'))
    first.over()
    first.over()
    watch(principalOf('a'))
    expect(() => watch(principalOf('a'))).toThrow()
  })

  test('a tenant may have so many, by all its keys and tokens together, and another tenant is not affected', () => {
    const { watch, streams, rejections } = open({ perTenant: 3, perKey: 9 })
    watch(principalOf('a'))
    watch(principalOf('b'))
    const third = watch(holder())
    for (const principal of [principalOf('c'), holder()]) expect(() => watch(principal)).toThrow(refusedBy('MAX_STREAMS_PER_TENANT'))
    expect(rejections).toEqual(['MAX_STREAMS_PER_TENANT', 'MAX_STREAMS_PER_TENANT'])
    watch({ ...principalOf('d'), tenant: 'other' })
    expect(streams.held(0.5)).toMatchObject({ 'tenant acme': 3 })
    expect(streams.held(0.5)).not.toHaveProperty('tenant other')
    third.over()
    watch(principalOf('c'))
  })

  test('the process may have so many, whosever they are', () => {
    const { watch } = open({ perProcess: 3 })
    for (const key of ['a', 'b', 'c']) watch(principalOf(key))
    expect(() => watch(principalOf('d'))).toThrow(
      expect.objectContaining({ code: 'overloaded', message: expect.stringContaining('MAX_STREAMS') }),
    )
  })

  test('where no key is asked for, only the process counts', () => {
    const { watch } = open({ perTask: 1, perKey: 1, perProcess: 3 })
    for (let i = 0; i < 3; i += 1) watch(localCaller)
    expect(() => watch(localCaller)).toThrow(expect.objectContaining({ code: 'overloaded' }))
  })

  test('a token may have so many, those that follow it included; other tokens of its key are not locked out', () => {
    const { watch } = open({ perToken: 2, perKey: 9 })
    const first = holder()
    const follower: Principal = { ...first, ...(first.token && { token: tokens.renew(first.token).claims }) }
    watch(first)
    const second = watch(follower)
    for (const principal of [first, follower]) expect(() => watch(principal)).toThrow(refusedBy('MAX_STREAMS_PER_TOKEN'))
    watch(holder())
    second.over()
    watch(first)
  })

  test('tokens of one task and subject count together', () => {
    const { watch } = open({ perToken: 1, perKey: 9 })
    watch(holder({ subject: 'anna' }))
    expect(() => watch(holder({ subject: 'anna' }))).toThrow(refusedBy('MAX_STREAMS_PER_TOKEN'))
    watch(holder({ subject: 'ben' }))
    watch(holder({ subject: 'anna', task: 'two' }), { task: 'two' })
  })

  test('a task may have so many, by keys and tokens together, those included that a POST has opened', () => {
    const { watch, streams } = open({ perTask: 3, perKey: 9 })
    watch(holder())
    watch(principalOf('b'))
    const created = streams.admit(principalOf('c'), [])
    created.watches('one')
    created.watches('one')
    expect(() => watch(holder())).toThrow(refusedBy('MAX_STREAMS_PER_TASK'))
    watch(holder({ task: 'two' }), { task: 'two' })
    created.over()
    watch(holder())
    expect(() => watch(holder())).toThrow(refusedBy('MAX_STREAMS_PER_TASK'))
  })
})

describe('until when', () => {
  test('streams of a key that is revoked are ended within ten seconds, and no others', async () => {
    const { watch, revoked } = open()
    const [cut, kept, local] = [watch(principalOf('a')), watch(principalOf('b')), watch(localCaller)]
    await passSeconds(10)
    expect(cut.leave).not.toHaveBeenCalled()
    revoked.add('a')
    await passSeconds(10)
    expect([cut, kept, local].map(({ leave }) => leave.mock.calls.length)).toEqual([1, 0, 0])
  })

  test('streams of a token that is revoked are ended within ten seconds, and no others', async () => {
    const { watch, revoked, cuts } = open({ perKey: 9 })
    const viewers = [watch(holder({ subject: 'anna' })), watch(holder({ subject: 'ben' })), watch(holder()), watch(principalOf('a'))]
    revoked.add('anna')
    await passSeconds(10)
    expect(viewers.map(({ leave }) => leave.mock.calls.length)).toEqual([1, 0, 0, 0])
    expect(cuts).toEqual([[{ task: 'one' }, 1]])
  })

  test('a stream by a token ends with the session, an hour after its first token was made, however often that was renewed', async () => {
    const { watch } = open({ perKey: 9 })
    const [viewer, keyed] = [watch(holder({ ttlSeconds: 5 })), watch(principalOf('b'))]
    await passSeconds(3_599)
    expect(viewer.leave).not.toHaveBeenCalled()
    await passSeconds(1)
    expect([viewer.leave.mock.calls.length, keyed.leave.mock.calls.length]).toEqual([1, 0])
    const last = viewer.sentTokens.at(-1)
    expect([Date.parse(last?.expiresAt ?? '') <= Date.now(), tokens.verify(last?.token ?? '')]).toEqual([true, null])
  })

  test('Postgres is queried once for all keys, and not at all without open streams', async () => {
    const { watch, stillLive } = open()
    await passSeconds(20)
    expect(stillLive).not.toHaveBeenCalled()
    watch(principalOf('a'))
    watch(principalOf('a'))
    watch(principalOf('b'))
    await passSeconds(10)
    expect(stillLive.mock.calls).toEqual([[['a', 'b']]])
  })

  test('when Postgres cannot be asked, streams go on', async () => {
    const { watch, stillLive, errors } = open()
    const viewer = watch(principalOf('a'))
    stillLive.mockRejectedValueOnce(new Error('away'))
    await passSeconds(10)
    expect([viewer.leave.mock.calls.length, errors.length]).toEqual([0, 1])
  })
})

describe('fresh tokens', () => {
  test.each([5, 60, 900])('come before the old one of %d s ends, one after the other, for the same task, to read with', async ttl => {
    const { watch } = open()
    const { sentTokens } = watch(holder({ ttlSeconds: ttl, can: ['read', 'send', 'cancel'] }))
    let good = Date.now() + ttl * 1_000
    for (let second = 0; second < ttl * 3; second += 1) {
      await passSeconds(1)
      const last = sentTokens.at(-1)
      if (last) good = Date.parse(last.expiresAt)
      expect(good).toBeGreaterThan(Date.now())
    }
    expect(sentTokens.length).toBeGreaterThanOrEqual(3)
    expect(sentTokens.length).toBeLessThanOrEqual(6)
    expect(tokens.verify(sentTokens.at(-1)?.token ?? '')).toMatchObject({ tenant: 'acme', task: 'one', can: ['read'], key: 'a' })
  })

  test('do not come for a token that lives as long as its session', async () => {
    const { watch } = open()
    const { sentTokens, leave } = watch(holder({ ttlSeconds: 3_600 }))
    await passSeconds(3_600)
    expect([sentTokens, leave.mock.calls.length]).toEqual([[], 1])
  })

  test('a blocked viewer receives its next token when its socket drains, and a viewer with a key receives none', async () => {
    const { watch } = open()
    let isFull = true
    const late = watch(holder(), { isFull: () => isFull })
    const keyed = watch(principalOf('b'))
    await passSeconds(50)
    expect(late.sentTokens).toEqual([])
    isFull = false
    await passSeconds(1)
    expect([late.sentTokens.length, keyed.sentTokens.length]).toEqual([1, 0])
  })
})
