/** Shortens the conversation that the model is shown. It sees whole messages only, its result is a step, and viewers get an event about it. */
import { custom, type Usage, untilAborted } from '@rivulet/protocol'
import type { HistoryMessage } from '../model/model.ts'
import type { TakeDurably } from './durable.ts'
import type { RunEmitter } from './run-emitter.ts'

export type Compaction = {
  /** Whether to shorten, asked before each request, with the usage of the response before it. It should be quick and have no effects. */
  when(messages: readonly HistoryMessage[], usage: Usage | undefined): boolean
  /** Returns the messages that take the place of these in all later requests of the run. */
  run(messages: readonly HistoryMessage[], options: { signal: AbortSignal }): Promise<readonly HistoryMessage[]>
}

type CompactionContext = { take: TakeDurably; emitter: RunEmitter; signal: AbortSignal; usage: Usage | undefined }

/** @returns null where nothing is shortened. */
export async function compactMessages(
  name: string,
  { when, run }: Compaction,
  messages: readonly HistoryMessage[],
  { take, emitter, signal, usage }: CompactionContext,
): Promise<readonly HistoryMessage[] | null> {
  const whole = messages.filter(({ status = 'complete' }) => status === 'complete')
  if (!when(whole, usage)) return null
  try {
    const kept = await take<readonly HistoryMessage[], readonly HistoryMessage[]>(name, {
      work: () => untilAborted(run(whole, { signal }), signal),
      toMemory: result => result,
      fromMemory: memory => memory,
    })
    emitter.emit(custom('compaction', { before: whole.length, after: kept.length }))
    return kept
  } catch (error) {
    if (signal.aborted) return null
    throw error
  }
}
