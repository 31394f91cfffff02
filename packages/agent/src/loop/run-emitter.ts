/**
 * The one way out of a run for updates: adds each to the transcript, passes it to the observers, then sends it to the readers.
 *
 * `emit` never throws. An update that the transcript rejects (too much output, a wrong index) and an observer's error under the policy `fail`
 * are fatal: the emitter calls `onFatal`, and from then on emits only the closing of open messages.
 *
 * With `holdsEnds`, the update that ends a message goes no further than the transcript until it is released: viewers see the end of a response or
 * a result only when it is stored, so that what they saw is never made again.
 */
import { done, type Failure, type Update, type UpdateOf } from '@rivulet/protocol'
import type { EventSink } from '../model/event-stream.ts'
import type { SpokenMessage } from '../model/model.ts'
import { createTranscript } from '../model/transcript.ts'
import { createObservers, type Observer, type ObserverFailurePolicy } from './observers.ts'

export type RunEmitter = {
  emit(update: Update): void
  /** Passes on the held ends, or that of one message. */
  release(index?: number): void
  messages(): SpokenMessage[]
  nextIndex(): number
  /** Closes the open messages, in index order. */
  closeOpen(status: 'complete' | 'aborted' | 'failed', error?: Failure): void
  fatal(): { error: unknown } | null
  observerErrors(): unknown[]
  end(): void
}

type RunEmitterOptions = {
  sink: EventSink<Update>
  observers: readonly (Observer | ((update: Update) => void))[]
  policy: ObserverFailurePolicy
  onFatal: () => void
  holdsEnds: boolean
}

export function createRunEmitter({ sink, observers: watching, policy, onFatal, holdsEnds }: RunEmitterOptions): RunEmitter {
  const transcript = createTranscript()
  const observers = createObservers(watching, policy, fail)
  let fatal: { error: unknown } | null = null
  let held: Update[] = []

  return {
    emit: update => {
      if (!fatal) send(update)
    },
    release,
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
    if (holdsEnds && isEnd(update)) held.push(update)
    else pass(update)
  }

  function pass(update: Update): void {
    observers.update(update)
    sink.emit(update)
    const message = isEnd(update) ? transcript.messageAt(update.index) : undefined
    if (message) observers.message(message)
  }

  function release(index?: number): void {
    const released = held.filter(update => index === undefined || update.index === index)
    held = held.filter(update => !released.includes(update))
    for (const update of released) pass(update)
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

function isEnd(update: Update): update is UpdateOf<'done' | 'full'> {
  return update.type === 'done' || update.type === 'full'
}
