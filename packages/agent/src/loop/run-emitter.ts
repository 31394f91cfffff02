/**
 * The one way out of a run for updates: adds each to the transcript, passes it to the observers, then sends it to the readers.
 *
 * `emit` never throws. An update that the transcript rejects (too much output, a wrong index) and an observer's error under the policy `fail`
 * are fatal: the emitter calls `onFatal`, and from then on emits only the closing of open messages.
 */
import { done, type Failure, type Update } from '@rivulet/protocol'
import type { EventSink } from '../model/event-stream.ts'
import type { SpokenMessage } from '../model/model.ts'
import { createTranscript } from '../model/transcript.ts'
import { createObservers, type Observer, type ObserverFailurePolicy } from './observers.ts'

export type RunEmitter = {
  emit(update: Update): void
  messages(): SpokenMessage[]
  nextIndex(): number
  /** Closes the open messages, in index order. */
  closeOpen(status: 'complete' | 'aborted' | 'failed', error?: Failure): void
  fatal(): { error: unknown } | null
  observerErrors(): unknown[]
  end(): void
}

export type RunEmitterOptions = {
  sink: EventSink<Update>
  observers: readonly (Observer | ((update: Update) => void))[]
  policy: ObserverFailurePolicy
  onFatal: () => void
}

export function createRunEmitter({ sink, observers: watching, policy, onFatal }: RunEmitterOptions): RunEmitter {
  const transcript = createTranscript()
  const observers = createObservers(watching, policy, fail)
  let fatal: { error: unknown } | null = null

  return {
    emit: update => {
      if (!fatal) send(update)
    },
    messages: transcript.messages,
    nextIndex: transcript.nextIndex,
    closeOpen,
    fatal: () => fatal,
    observerErrors: observers.errors,
    end: observers.end,
  }

  function send(update: Update): void {
    try {
      transcript.add(update)
    } catch (error) {
      fail(error)
      return
    }
    observers.update(update)
    sink.emit(update)
    if (update.type !== 'done' && update.type !== 'full') return
    const message = transcript.messageAt(update.index)
    if (message) observers.message(message)
  }

  function closeOpen(status: 'complete' | 'aborted' | 'failed', error?: Failure): void {
    const how = { status, ...(status === 'aborted' && { stopReason: 'aborted' as const }), ...(error && { error }) }
    for (const index of transcript.open()) send(done(index, how))
  }

  function fail(error: unknown): void {
    fatal ??= { error }
    onFatal()
  }
}
