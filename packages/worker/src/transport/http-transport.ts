/**
 * The transport of a worker that must not reach Redis: the API appends for it, and it polls the API for turns, one at a time, and for hints.
 *
 * A poll is never cut off while the worker runs, because its reply may already bring a turn. The API gives a turn that is not claimed to another worker.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { JobEnd } from '@rivulet/broker'
import type { AppendResult, NextTurn } from '@rivulet/contract/internal'
import { backoffMs, RivuletError } from '@rivulet/protocol'
import { fullTextOf } from '../failure.ts'
import type { Logger } from '../logger.ts'
import type { ServerCalls } from '../server-calls.ts'
import type { Intake, Transport, TransportEvents, TurnAppend } from './transport.ts'

/** Below the time in which a call has to be replied to. */
const pollMs = 8_000
/** While an agent is at its own limit: its next poll must not wait for the others. */
const shortPollMs = 500
/** How long a turn that this worker cannot take yet is tried again: the API gives its job back a little later. */
const retryMs = 4_000
/** A body has at most `MAX_JSON_ITEMS` items, which is 1,000 or more, and an append takes six of them. */
const appendsPerCall = 150
const bytesPerCall = 1024 * 1024

type HttpTransportOptions = { worker: string; server: Pick<ServerCalls, 'append' | 'next' | 'hints'>; log: Logger }

export function createHttpTransport({ worker, server, log }: HttpTransportOptions, { onOver, onAnswered }: TransportEvents): Transport {
  const closing = new AbortController()
  void repeatUntil(closing.signal, async () => {
    const { over, answered } = await server.hints({ worker, waitMs: pollMs }, closing.signal)
    for (const turnId of over) onOver(turnId)
    for (const turnId of answered) onAnswered(turnId)
  })
  return { append, ready: async () => null, take, close: () => closing.abort() }

  /** A server that does not respond is asked again, with a growing pause. */
  async function repeatUntil(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    for (let failures = 0; !signal.aborted; ) {
      try {
        await work()
        failures = 0
      } catch (error) {
        failures += 1
        if (failures === 3) log.warn({ reason: fullTextOf(error) }, 'polling the API fails; retrying')
        await sleep(backoffMs(failures, { firstMs: 100, maxMs: 2_000 }), undefined, { signal }).catch(() => {})
      }
    }
  }

  /** If one call fails, all are sent again: the log recognises what it has. */
  async function append(appends: readonly TurnAppend[]): Promise<AppendResult[]> {
    return (await Promise.all(splitAppends(appends).map(appendPiece))).flat()
  }

  /** A large call is made in the name of its first turn. If that is gone, the others are sent by themselves. */
  async function appendPiece(piece: readonly TurnAppend[]): Promise<AppendResult[]> {
    try {
      return await server.append(piece.map(bodyOf))
    } catch (error) {
      if (!(error instanceof RivuletError) || error.code !== 'task_not_found') throw error
      if (piece.length === 1) return ['fenced']
      const results: AppendResult[] = []
      for (const one of piece) results.push(...(await appendPiece([one])))
      return results
    }
  }

  function take(...[{ agents }, room, run]: Parameters<Transport['take']>): Intake {
    const stopping = new AbortController()
    const running = new Set<Promise<void>>()
    let hasRoom = () => {}
    const polling = repeatUntil(stopping.signal, poll)
    // The API finds the queues of the agents for each poll.
    return { resize: () => hasRoom(), follow: () => {}, close }

    async function poll(): Promise<void> {
      const open = agents.filter(agent => room(agent).used < room(agent).most)
      if (open.length === 0) return untilRoom()
      const waitMs = open.length === agents.length ? pollMs : shortPollMs
      const turn = await server.next({ agents: open, waitMs }, stopping.signal)
      if (!turn) return
      const taken = deliver(turn).finally(() => running.delete(taken))
      running.add(taken)
    }

    function untilRoom(): Promise<void> {
      return new Promise(resolve => {
        hasRoom = end
        stopping.signal.addEventListener('abort', end)

        // A worker is full many times in its life: each listener is taken off again.
        function end(): void {
          stopping.signal.removeEventListener('abort', end)
          resolve()
        }
      })
    }

    async function deliver({ agent, turnId }: NonNullable<NextTurn>): Promise<void> {
      const until = performance.now() + retryMs
      for (let end: JobEnd = await run(agent, turnId); end !== 'done'; end = await run(agent, turnId)) {
        if (stopping.signal.aborted || performance.now() + end.backInMs > until) return
        await sleep(end.backInMs, undefined, { signal: stopping.signal }).catch(() => {})
      }
    }

    async function close(): Promise<void> {
      stopping.abort()
      await polling
      await Promise.all(running)
    }
  }
}

function bodyOf({ turnId, claimId, epoch, first, entries }: TurnAppend) {
  return { turnId, claimId, epoch, first, entries: entries.map(({ json }) => json).join('\n') }
}

function splitAppends(appends: readonly TurnAppend[]): TurnAppend[][] {
  const calls: TurnAppend[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const append of appends) {
    const size = append.entries.reduce((sum, { json }) => sum + json.length, 0)
    const last = calls.at(-1)
    if (last && last.length < appendsPerCall && bytes + size <= bytesPerCall) last.push(append)
    else calls.push([append])
    bytes = calls.at(-1)?.length === 1 ? size : bytes + size
  }
  return calls
}
