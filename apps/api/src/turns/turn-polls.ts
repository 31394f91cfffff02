/**
 * Takes jobs from the queue for workers without Redis, which poll, and no more jobs than open polls have room for.
 *
 * A job that was handed out stays locked in the queue until its turn is claimed by this process. If no claim comes, because the reply was lost or another
 * process got the claim, the job returns to the queue: the claim in Postgres decides which worker runs a turn, as for every job.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { JobEnd, TurnConsumer } from '@rivulet/broker'
import type { TurnId } from '@rivulet/protocol'

/** How long a job waits for its claim. */
const claimMs = 5_000
/** Between a turn that is handed out and the next poll of its worker. A consumer is not resized for that. */
const settleMs = 20
/** How long the consumer of a queue is kept without a poll. */
const idleMs = 30_000
/** How long consumers may take to close: Redis may be unavailable. */
const closingMs = 3_000
/** Turns that come so close behind the first get to the same poll. */
const togetherMs = 5
/** For a job whose turn no open poll may run. */
const unreachedMs = 1_000

/** A turn that a poll gets, and the queue that it is from. */
type PolledTurn = { queue: string; turnId: TurnId }

type Poll = { queues: readonly string[]; reaches: (turnId: TurnId) => Promise<boolean> }

type OpenPoll = Poll & { give: (turn: PolledTurn) => void }
/** `room`: how many turns its open polls may still get. */
type Line = { consumer: TurnConsumer; polls: Set<OpenPoll>; room: number; handed: number; limit: number; idleSince: number }

export type TurnPolls = ReturnType<typeof createTurnPolls>

/** `consume` begins to take jobs of a queue, one at a time. */
export function createTurnPolls(consume: (queue: string, run: (turnId: TurnId) => Promise<JobEnd>) => TurnConsumer) {
  const lines = new Map<string, Line>()
  const claims = new Map<TurnId, (end: JobEnd) => void>()
  const closing = new AbortController()
  let resizing: NodeJS.Timeout | undefined
  const sweep = setInterval(closeIdle, idleMs / 2).unref()
  return { next, nextTurns, settle, close }

  /** The next turn of one of the queues, or null when the signal fires first. */
  async function next(poll: Poll, signal: AbortSignal): Promise<PolledTurn | null> {
    return (await nextTurns(poll, 1, signal))[0] ?? null
  }

  /** The next turn of one of the queues, with up to `most` in all that come with it; none when the signal fires first. */
  function nextTurns(poll: Poll, most: number, signal: AbortSignal): Promise<PolledTurn[]> {
    const over = AbortSignal.any([signal, closing.signal])
    if (over.aborted) return Promise.resolve([])
    return new Promise(resolve => {
      const found: PolledTurn[] = []
      const own = poll.queues.map(lineOf)
      const open: OpenPoll = { ...poll, give }
      let together: NodeJS.Timeout | undefined
      over.addEventListener('abort', end)
      for (const line of own) {
        line.polls.add(open)
        line.room += most
        if (line.limit === 0) resize(line)
      }
      resizeSoon()

      function give(turn: PolledTurn): void {
        found.push(turn)
        for (const line of own) line.room -= 1
        if (found.length === most) end()
        else together ??= setTimeout(end, togetherMs)
      }

      function end(): void {
        clearTimeout(together)
        over.removeEventListener('abort', end)
        for (const line of own) {
          line.polls.delete(open)
          line.room -= most - found.length
        }
        resizeSoon()
        resolve(found)
      }
    })
  }

  /** The turn was claimed, or its claim was rejected: what becomes of its job. */
  function settle(turnId: TurnId, end: JobEnd): void {
    claims.get(turnId)?.(end)
  }

  function lineOf(queue: string): Line {
    const known = lines.get(queue)
    if (known) return known
    const line: Line = {
      ...{ polls: new Set<OpenPoll>(), room: 0, handed: 0, limit: 1, idleSince: performance.now() },
      consumer: consume(queue, turnId => offer(queue, line, turnId)),
    }
    lines.set(queue, line)
    return line
  }

  async function offer(queue: string, line: Line, turnId: TurnId): Promise<JobEnd> {
    for (const poll of [...line.polls]) {
      // A database that is unavailable must not cost the job.
      if (!(await poll.reaches(turnId).catch(() => false)) || !line.polls.has(poll)) continue
      line.handed += 1
      const claimed = untilClaimed(turnId)
      poll.give({ queue, turnId })
      const end = await claimed
      line.handed -= 1
      resizeSoon()
      return end
    }
    return { backInMs: line.polls.size > 0 ? unreachedMs : settleMs }
  }

  function untilClaimed(turnId: TurnId): Promise<JobEnd> {
    // Two jobs of one turn, because it was dispatched again: the later one waits for the claim.
    settle(turnId, 'done')
    return new Promise(resolve => {
      const late = setTimeout(() => end({ backInMs: 1 }), claimMs)
      claims.set(turnId, end)

      function end(how: JobEnd): void {
        clearTimeout(late)
        claims.delete(turnId)
        resolve(how)
      }
    })
  }

  function resizeSoon(): void {
    resizing ??= setTimeout(() => {
      resizing = undefined
      for (const line of lines.values()) resize(line)
    }, settleMs)
  }

  function resize(line: Line): void {
    const wanted = line.room + line.handed
    if (wanted > 0) line.idleSince = performance.now()
    if (wanted === line.limit) return
    line.limit = wanted
    line.consumer.setConcurrency(wanted)
  }

  function closeIdle(): void {
    for (const [queue, line] of lines) {
      if (line.limit > 0 || line.polls.size > 0 || performance.now() - line.idleSince < idleMs) continue
      lines.delete(queue)
      // It takes no job any more, even if Redis is unavailable and cannot be told.
      line.consumer.close().catch(() => {})
    }
  }

  /** Ends every poll, and gives back the jobs that were not claimed yet. */
  async function close(): Promise<void> {
    clearInterval(sweep)
    closing.abort()
    for (const end of claims.values()) end({ backInMs: 1 })
    const closed = Promise.all(Array.from(lines.values(), ({ consumer }) => consumer.close()))
    await Promise.race([closed, sleep(closingMs, undefined, { ref: false })])
    clearTimeout(resizing)
  }
}
