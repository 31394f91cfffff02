/**
 * Those who watch a run: called synchronously, in the order in which they were given, with every update before any reader of the stream has
 * it. They see frozen values and their answers are ignored, so they cannot change or steer anything; but they are waited for, so they should
 * be quick. What takes time belongs behind a `channelReporter`.
 */
import type { Update } from '@rivulet/protocol'
import type { SpokenMessage } from './model.ts'

export type Observer = {
  update?(update: Update): void
  /** Each message once, whole, when it is closed: what a transcript is made of. */
  message?(message: SpokenMessage): void
  /** The run is over, however it ended. */
  end?(): void
}

/** What becomes of an observer's error: nothing, a line in a log, an entry in the result, or the end of the run. */
export type ObserverFailurePolicy = 'ignore' | 'collect' | 'fail' | { log: (error: unknown) => void }

export type Observers = {
  update(update: Update): void
  message(message: SpokenMessage): void
  end(): void
  /** What went wrong, where the policy is to collect it. */
  errors(): unknown[]
}

export function createObservers(
  observers: readonly (Observer | ((update: Update) => void))[],
  policy: ObserverFailurePolicy,
  onFatal: (error: unknown) => void,
): Observers {
  const watching: Observer[] = observers.map(observer => (typeof observer === 'function' ? { update: observer } : observer))
  const collected: unknown[] = []
  return {
    update: update => notify(observer => observer.update?.(deepFreeze(update))),
    message: message => notify(observer => observer.message?.(deepFreeze(message))),
    end: () => notify(observer => observer.end?.()),
    errors: () => collected,
  }

  function notify(tell: (observer: Observer) => unknown): void {
    for (const observer of watching) {
      try {
        const answer = tell(observer)
        // Nobody waits for an observer that is async, but its error is an observer's error.
        if (answer instanceof Promise) answer.catch(handle)
      } catch (error) {
        handle(error)
      }
    }
  }

  function handle(error: unknown): void {
    if (policy === 'ignore') return
    if (policy === 'collect') collected.push(error)
    else if (policy === 'fail') onFatal(error)
    else logQuietly(policy.log, error)
  }
}

function logQuietly(log: (error: unknown) => void, error: unknown): void {
  try {
    log(error)
  } catch {
    // A log that fails has nobody left to tell.
  }
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const child of Object.values(value)) deepFreeze(child)
  return value
}
