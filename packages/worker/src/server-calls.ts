/**
 * The worker's calls to the server, except heartbeats, which the lease thread sends. Each call is idempotent, so it is retried until the server
 * responds.
 */
import type * as http from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type AppendBody,
  type AppendResult,
  type AskBody,
  type AskResult,
  appendResult,
  askResult,
  type ClaimResult,
  claimResult,
  type FinishBody,
  type FinishResult,
  finishResult,
  type Hello,
  type Hints,
  type Holding,
  helloResult,
  hintsResult,
  historyResult,
  type JoinedInput,
  type NextBody,
  type NextTurn,
  nextResult,
  type ParkBody,
  type ParkResult,
  parkResult,
  releaseResult,
  reopenResult,
  type SpawnResult,
  type StepBody,
  type StepResult,
  spawnResult,
  stepResult,
  type TakeBody,
  takeResult,
  type UsageBody,
  usageResult,
  type WantedChildInput,
  waitsResult,
} from '@rivulet/contract/internal'
import { type StoreCallInput, type StoreCallResult, storeCallResult } from '@rivulet/contract/store'
import { backoffMs, isErrorCode, type Message, RivuletError, type TurnId, type Wait } from '@rivulet/protocol'
import { keepSignal } from '@rivulet/runtime/keep-signal'
import pLimit from 'p-limit'
import { z } from 'zod'
import { createServerRequests } from './lease-thread/server-requests.mjs'
import { createFileCalls } from './turn/file-calls.ts'

const callTimeoutMs = 10_000

/** For the turns of a process: ten thousand that begin at once must not fill the server's queue, because then none would get its reply in time. */
const callsAtOnce = 64

type Claimed = Pick<Holding, 'turnId' | 'claimId'>
type SpawnInput = Claimed & { children: WantedChildInput[] }

export type ServerCalls = ReturnType<typeof createServerCalls>
/** Those about a turn that runs. */
export type TurnCalls = Omit<ServerCalls, 'append' | 'next' | 'hints'>

export function createServerCalls({ url, key }: { url: string; key?: string | undefined }) {
  const inTurn = pLimit(callsAtOnce)
  // `fetch` would take most of what a short turn costs a worker.
  const requests = createServerRequests(url)
  return {
    hello,
    append,
    next,
    hints,
    claim,
    reopen,
    step,
    usage,
    store,
    ask: openWaits,
    spawn,
    child,
    waits,
    park,
    take,
    release,
    finish,
    history,
    files: createFileCalls({ requests, key }),
  }

  /** Returns, by agent, the queues that are named otherwise. */
  async function hello(body: Hello): Promise<Record<string, string>> {
    return (await ask('hello', body, helloResult)).queues ?? {}
  }

  /** Sent once: the caller decides how long it retries. */
  async function append(appends: AppendBody['appends']): Promise<AppendResult[]> {
    return (await ask('append', { appends }, appendResult, undefined, appends[0])).results
  }

  async function next(body: NextBody, signal: AbortSignal): Promise<NextTurn> {
    return (await ask('next', body, nextResult, signal)).turn
  }

  async function hints(body: { worker: string; waitMs: number }, signal: AbortSignal): Promise<Hints> {
    return ask('hints', body, hintsResult, signal)
  }

  async function claim(body: { worker: string; turnId: TurnId; claimId: string }, signal: AbortSignal): Promise<ClaimResult> {
    return insist('claim', body, claimResult, signal)
  }

  /** The new epoch, or null when the turn is no longer ours. */
  async function reopen(body: Holding, signal: AbortSignal): Promise<number | null> {
    const reopened = await insist('reopen', body, reopenResult, signal)
    return reopened.result === 'reopened' ? reopened.epoch : null
  }

  async function step(body: StepBody, signal: AbortSignal): Promise<StepResult> {
    return insist('step', body, stepResult, signal, ask => inTurn(ask), body)
  }

  async function store(body: Claimed & { call: StoreCallInput }, signal: AbortSignal): Promise<StoreCallResult> {
    return insist('store', body, storeCallResult, signal)
  }

  /** Whether the task has used its budget. */
  async function usage(body: UsageBody, signal: AbortSignal): Promise<boolean> {
    return (await insist('usage', body, usageResult, signal)).isOverBudget
  }

  async function openWaits(body: AskBody, signal: AbortSignal): Promise<AskResult> {
    return insist('ask', body, askResult, signal)
  }

  async function spawn(body: SpawnInput, signal: AbortSignal): Promise<SpawnResult> {
    return insist('spawn', body, spawnResult, signal)
  }

  /** Null when the turn is no longer ours. */
  async function waits(body: Pick<Holding, 'turnId' | 'claimId'>, signal: AbortSignal): Promise<Wait[] | null> {
    return (await insist('waits', body, waitsResult, signal)).waits
  }

  async function park(body: ParkBody, signal: AbortSignal): Promise<ParkResult> {
    return (await insist('park', body, parkResult, signal)).result
  }

  /** Null when the turn is no longer ours. */
  async function take(body: TakeBody, signal: AbortSignal): Promise<JoinedInput[] | null> {
    return (await insist('take', body, takeResult, signal)).joined
  }

  /** Not queued behind other calls, because a worker that stops has little time. */
  async function release(body: Holding, signal: AbortSignal): Promise<void> {
    await insist('release', body, releaseResult, signal, ask => ask())
  }

  async function finish(body: FinishBody, signal: AbortSignal): Promise<FinishResult> {
    return (await insist('finish', body, finishResult, signal)).result
  }

  async function history(held: Claimed, signal: AbortSignal): Promise<Message[]> {
    return pages('messages', held, signal)
  }

  /** What a child said in its first turn. */
  async function child(held: Claimed & { name: string }, signal: AbortSignal): Promise<Message[]> {
    return pages('child', held, signal)
  }

  async function pages(call: string, held: object, signal: AbortSignal): Promise<Message[]> {
    const messages: Message[] = []
    for (let after: number | null | undefined; after !== null; ) {
      const page: z.output<typeof historyResult> = await insist(
        call,
        { ...held, ...(after !== undefined && { after }) },
        historyResult,
        signal,
      )
      messages.push(...page.data)
      after = page.nextCursor
    }
    return messages
  }

  /** Repeats the call until the server replies: it may be restarting, or its database may be unavailable. */
  async function insist<S extends z.ZodType>(
    call: string,
    body: object,
    schema: S,
    signal: AbortSignal,
    wait: <T>(ask: () => Promise<T>) => Promise<T> = inTurn,
    held?: Claimed,
  ): Promise<z.output<S>> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await wait(() => {
          signal.throwIfAborted()
          return ask(call, body, schema, undefined, held)
        })
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof RivuletError && !error.row.retry) throw error
        await sleep(backoffMs(attempt, { firstMs: 100, maxMs: 2_000 }), undefined, { signal })
      }
    }
  }

  /** @param held of a body that may be large: the server checks it before it reads the body */
  async function ask<S extends z.ZodType>(
    call: string,
    body: object,
    schema: S,
    signal?: AbortSignal,
    held?: Claimed,
  ): Promise<z.output<S>> {
    const response = await post(call, JSON.stringify(body), signal, held && { 'x-turn-id': held.turnId, 'x-claim-id': held.claimId })
    if (response.statusCode === 200) return schema.parse(await json(response))
    const rejection = errorShape.safeParse(await json(response).catch(() => null))
    // A proxy may have responded instead of the server.
    if (!rejection.success) throw new Error(`${call} returned ${response.statusCode}`)
    const { code, message } = rejection.data.error
    throw new RivuletError(isErrorCode(code) ? code : 'internal', message)
  }

  function post(call: string, body: string, stopping?: AbortSignal, about: object = {}): Promise<http.IncomingMessage> {
    const timeout = keepSignal(AbortSignal.timeout(callTimeoutMs))
    const signal = stopping ? AbortSignal.any([timeout, stopping]) : timeout
    const headers = { 'content-type': 'application/json', ...about, ...(key && { authorization: `Bearer ${key}` }) }
    return requests.send(call, { headers, signal }, request => request.end(body))
  }
}

const errorShape = z.object({ error: z.object({ code: z.string(), message: z.string() }) })
