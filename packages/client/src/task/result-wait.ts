/**
 * Waits for the result of a task: one wait for all callers, until new input replaces it.
 *
 * It is a subscriber of the view like any other, so it opens no additional connection. When the last caller gives up, it unsubscribes.
 */
import { hasEnded, RivuletError, untilAborted } from '@rivulet/protocol'
import type { CallOptions } from '../http/http.ts'
import { type ReadMessages, readAll } from './left-out.ts'
import { failureOf, resultOf, type TaskResult } from './task-result.ts'
import type { TaskView, ViewState } from './task-view.ts'

type ResultWaitDeps = {
  view: () => TaskView
  messages: ReadMessages
}

type Wait = { outcome: Promise<TaskResult>; waiting: number; leave: () => void; isSettled: boolean }

export function createResultWait({ view, messages }: ResultWaitDeps) {
  let current: Wait | null = null
  return { wait, renew }

  function wait({ signal }: CallOptions = {}): Promise<TaskResult> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    current ??= begin()
    return share(current, signal)
  }

  /** What has settled is the past. What has not is going to settle with the new turn. */
  function renew(): void {
    if (current?.isSettled) current = null
  }

  function begin(): Wait {
    const looked = view()
    let leave = () => {}
    const over = new Promise<ViewState>(resolve => {
      leave = looked.subscribe(look)
      // Another subscriber may have kept the view open for long.
      look()

      function look(): void {
        const state = looked.current
        if (state.connection === 'ended' || state.connection === 'failed') resolve(state)
      }
    })
    const own: Wait = { outcome: over.then(conclude).finally(settle), waiting: 0, leave, isSettled: false }
    return own

    function settle(): void {
      own.isSettled = true
      own.leave()
    }
  }

  function share(own: Wait, signal: AbortSignal | undefined): Promise<TaskResult> {
    own.waiting += 1
    return untilAborted(own.outcome, signal).finally(() => {
      own.waiting -= 1
      if (own.waiting > 0 || own.isSettled) return
      own.leave()
      if (current === own) current = null
    })
  }

  async function conclude({ error, status, turns, messages: known, messagesFrom }: ViewState): Promise<TaskResult> {
    if (error) throw error
    const last = turns.at(-1)
    // A turn that joined another one has its result there.
    const turn = turns.find(({ number }) => number === last?.joinedTo) ?? last
    if (!turn || status === null || !hasEnded(status)) throw new RivuletError('internal', 'The stream ended too early')
    const inTurn = known.filter(message => message.turn === turn.number)
    // A snapshot leaves out what is old and long: then the beginning may be missing, and the rows have it.
    const isCut = messagesFrom > 0 && (inTurn[0]?.index ?? messagesFrom) === messagesFrom
    const result = resultOf(status, turn, isCut ? await readAll(messages, { turn: turn.number }) : inTurn)
    const failure = failureOf(status, turn, result)
    if (failure) throw failure
    return result
  }
}
