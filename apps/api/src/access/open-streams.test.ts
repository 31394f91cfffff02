/** Streams by the clock: how many, until when, and with which token. The clock is driven by hand. */
import type { TokenEvent } from '@rivulet/protocol'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { KeyCheck } from './key-check.ts'
import { createOpenStreams } from './open-streams.ts'
import { anybody, type Principal } from './principal.ts'
import { createTaskTokens } from './task-token.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const passSeconds = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1_000)
const principalOf = (key: string): Principal => ({ tenant: 'acme', scopes: ['tasks:read'], key, expiresAt: null, isRoot: false })
const tokens = createTaskTokens('secret', () => Date.now())

function open({ perKey = 2, perProcess = 5 } = {}) {
  const revoked = new Set<string>()
  const stillLive = vi.fn(async (ids: readonly string[]) => new Set(ids.filter(id => !revoked.has(id))))
  const keys = { stillLive } as Pick<KeyCheck, 'stillLive'> as KeyCheck
  const errors: unknown[] = []
  const streams = createOpenStreams({ keys, tokens, limits: { perKey, perProcess }, onCut: () => {}, onError: error => errors.push(error) })
  onTestFinished(streams.close)
  return { streams, revoked, stillLive, errors, watch }

  function watch(principal: Principal, isFull = () => false) {
    const admission = streams.admit(principal)
    const told: TokenEvent[] = []
    const leave = vi.fn(() => admission.over())
    admission.opened({ leave, tell: event => !isFull() && told.push(event) > 0 })
    return { ...admission, leave, told }
  }
}

describe('how many', () => {
  test('a key may have so many, and another as many again; who leaves makes room, once', () => {
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

  test('the process may have so many, whosever they are', () => {
    const { watch } = open({ perProcess: 3 })
    for (const key of ['a', 'b', 'c']) watch(principalOf(key))
    expect(() => watch(principalOf('d'))).toThrow(
      expect.objectContaining({ code: 'overloaded', message: expect.stringContaining('MAX_STREAMS') }),
    )
  })

  test('where no key is asked for, only the process counts', () => {
    const { watch } = open({ perKey: 1, perProcess: 3 })
    for (let i = 0; i < 3; i += 1) watch(anybody)
    expect(() => watch(anybody)).toThrow(expect.objectContaining({ code: 'overloaded' }))
  })
})

describe('until when', () => {
  test('streams of a key that is revoked are ended within ten seconds, and no others', async () => {
    const { watch, revoked } = open()
    const [cut, kept, local] = [watch(principalOf('a')), watch(principalOf('b')), watch(anybody)]
    await passSeconds(10)
    expect(cut.leave).not.toHaveBeenCalled()
    revoked.add('a')
    await passSeconds(10)
    expect([cut, kept, local].map(({ leave }) => leave.mock.calls.length)).toEqual([1, 0, 0])
  })

  test('Postgres is asked once for all keys, and not at all when nobody is there', async () => {
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
  const holder = (ttlSeconds: number): Principal => ({
    ...principalOf('a'),
    token: { task: 'one', can: ['read'], issuedAt: new Date(), expiresAt: new Date(Date.now() + ttlSeconds * 1_000) },
  })

  test.each([5, 60, 3_600])('come before the old one of %d s ends, one after the other, for the same task and rights', async ttl => {
    const { watch } = open()
    const { told } = watch(holder(ttl))
    let good = Date.now() + ttl * 1_000
    for (let second = 0; second < ttl * 3; second += 1) {
      await passSeconds(1)
      const last = told.at(-1)
      if (last) good = Date.parse(last.expiresAt)
      expect(good).toBeGreaterThan(Date.now())
    }
    expect(told.length).toBeGreaterThanOrEqual(3)
    expect(told.length).toBeLessThanOrEqual(6)
    expect(tokens.verify(told.at(-1)?.token ?? '')).toMatchObject({ tenant: 'acme', task: 'one', can: ['read'], key: 'a' })
  })

  test('who cannot be told now is told as soon as it can, and who came with a key is told nothing', async () => {
    const { watch } = open()
    let isFull = true
    const late = watch(holder(60), () => isFull)
    const keyed = watch(principalOf('b'))
    await passSeconds(50)
    expect(late.told).toEqual([])
    isFull = false
    await passSeconds(1)
    expect([late.told.length, keyed.told.length]).toEqual([1, 0])
  })
})
