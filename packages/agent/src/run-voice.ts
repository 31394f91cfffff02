/**
 * Through which everything in a run is said: kept in the transcript, shown to the observers, sent to the readers, in this order.
 *
 * Saying never throws. What cannot be said (too much in all, an index that does not come next) and an observer that must not fail are fatal:
 * the run is told once, and nothing more is said but the closing of what is open.
 */
import { done, type Failure, type Update } from '@rivulet/protocol'
import type { EventSink } from './event-stream.ts'
import type { SpokenMessage } from './model.ts'
import { createObservers, type Observer, type ObserverFailurePolicy } from './observers.ts'
import { createTranscript } from './transcript.ts'

export type RunVoice = {
  emit(update: Update): void
  messages(): SpokenMessage[]
  nextIndex(): number
  /** Closes what is open, in index order. */
  closeOpen(status: 'complete' | 'aborted' | 'failed', error?: Failure): void
  fatal(): { error: unknown } | null
  observerErrors(): unknown[]
  end(): void
}

export type RunVoiceOptions = {
  sink: EventSink<Update>
  observers: readonly (Observer | ((update: Update) => void))[]
  policy: ObserverFailurePolicy
  onFatal: () => void
}

export function createRunVoice({ sink, observers: watching, policy, onFatal }: RunVoiceOptions): RunVoice {
  const transcript = createTranscript()
  const observers = createObservers(watching, policy, fail)
  let fatal: { error: unknown } | null = null

  return {
    emit: update => {
      if (!fatal) say(update)
    },
    messages: transcript.messages,
    nextIndex: transcript.nextIndex,
    closeOpen,
    fatal: () => fatal,
    observerErrors: observers.errors,
    end: observers.end,
  }

  function say(update: Update): void {
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
    for (const index of transcript.open()) say(done(index, how))
  }

  function fail(error: unknown): void {
    fatal ??= { error }
    onFatal()
  }
}
