/**
 * The observers of a run: called synchronously, in list order, with every update before any reader of the stream receives it.
 *
 * They receive frozen values and their return values are ignored, so they cannot change the run. The run waits for each call, so an observer
 * must be quick; slow work belongs behind a `channelReporter`.
 */
import type { Update } from '@rivulet/protocol'
import type { SpokenMessage } from '../model/model.ts'

export type Observer = {
  update?(update: Update): void
  /** Called once for each message, with its whole content, when it is closed. */
  message?(message: SpokenMessage): void
  /** Called once when the run is over, however it ended. */
  end?(): void
}

/** What happens to an observer's error: it is ignored, added to the result, ends the run, or is logged. */
export type ObserverFailurePolicy = 'ignore' | 'collect' | 'fail' | { log: (error: unknown) => void }

type Observers = {
  update(update: Update): void
  message(message: SpokenMessage): void
  end(): void
  /** The errors collected under the policy `collect`. */
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

  function notify(callObserver: (observer: Observer) => unknown): void {
    for (const observer of watching) {
      try {
        const returned = callObserver(observer)
        // The run does not wait for an async observer, but the policy covers its error.
        if (returned instanceof Promise) returned.catch(handle)
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
    // There is no other place to report that the log failed.
  }
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const child of Object.values(value)) deepFreeze(child)
  return value
}
