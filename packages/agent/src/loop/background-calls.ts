/**
 * The calls of tools that run in the background: each has a response at once, and its result is a notice to the model later.
 *
 * Which notices a request shows is a step, like each result, so that an attempt after a crash makes the same requests. A run ends only when the
 * model has seen every result.
 */
import { data, full } from '@rivulet/protocol'
import type { ToolOutcome } from '../tools/tool-execution.ts'
import type { TakeDurably } from './durable.ts'
import type { RunEmitter } from './run-emitter.ts'

type StartedCall = { callId: string; tool: string; outcome: Promise<ToolOutcome> }

export type BackgroundCalls = {
  start(call: StartedCall): void
  /** Whether there are results that the model has not seen. */
  isPending(): boolean
  /** Emits a notice for each call that has ended, once at least one has if `waits`. */
  notify(name: string, options: { waits: boolean }): Promise<void>
  /** Resolves when all calls have ended. */
  settled(): Promise<unknown>
}

export function createBackgroundCalls({ take, emitter }: { take: TakeDurably; emitter: RunEmitter }): BackgroundCalls {
  const pending: StartedCall[] = []
  const ended = new Set<StartedCall>()
  return { start, isPending: () => pending.length > 0, notify, settled: () => Promise.allSettled(pending.map(({ outcome }) => outcome)) }

  function start(call: StartedCall): void {
    pending.push(call)
    const end = () => void ended.add(call)
    call.outcome.then(end, end)
  }

  async function notify(name: string, { waits }: { waits: boolean }): Promise<void> {
    if (pending.length === 0) return
    const callIds = await take(name, { work: () => endedIds(waits), toMemory: ids => ids, fromMemory: (ids: string[]) => ids })
    for (const callId of callIds) {
      const [call] = pending.splice(
        pending.findIndex(one => one.callId === callId),
        1,
      )
      if (call) await emitNotice(call)
    }
    emitter.release()
  }

  async function endedIds(waits: boolean): Promise<string[]> {
    if (waits) await Promise.race(pending.map(({ outcome }) => outcome))
    return pending.filter(call => ended.has(call)).map(({ callId }) => callId)
  }

  async function emitNotice({ callId, tool, outcome }: StartedCall): Promise<void> {
    const { content, isError } = await outcome
    emitter.emit(full(emitter.nextIndex(), data({ tool, callId, result: content, isError }), { notice: 'background' }))
  }
}
