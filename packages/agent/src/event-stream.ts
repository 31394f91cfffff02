/**
 * One producer, two views: its events as they come, and its result.
 *
 * Each iterator has its own cursor. Those that are opened together see every event. What all of them have read is let go, a thousand or more
 * at a time, and an iterator that comes late begins with the oldest event that is kept. The result always settles, whether or not somebody
 * iterates, and a failure that nobody looks at is no unhandled rejection.
 *
 * The producer waits for its slowest iterator, so that a model is not read faster than its reader takes it, until somebody asks for the
 * result: from then on it runs to its end whatever the readers do. A stream whose last reader leaves early, and whose result nobody asked
 * for, is aborted.
 */
export type EventStream<E, R> = AsyncIterable<E> & {
  readonly events: AsyncIterable<E>
  readonly result: Promise<R>
}

export type EventSink<E> = {
  emit(event: E): void
  /** Resolves when the readers have caught up far enough for more. */
  ready(): Promise<void>
  /** Fires when the caller aborts, and when nobody is left to listen. */
  readonly signal: AbortSignal
}

export type EventStreamOptions = {
  signal?: AbortSignal | undefined
  /** Unread events of the slowest iterator, above which the producer is asked to wait. Default 256. */
  maxUnread?: number
}

const letGoAtLeast = 1024

export function createEventStream<E, R>(
  produce: (sink: EventSink<E>) => Promise<R>,
  { signal, maxUnread = 256 }: EventStreamOptions = {},
): EventStream<E, R> {
  const abort = new AbortController()
  const readers = new Set<{ position: number }>()
  const news = createBell()
  const progress = createBell()
  // Positions count from the first event of the stream: `kept[0]` is the one at `keptFrom`, and everybody has read those before `oldest`.
  let kept: E[] = []
  let keptFrom = 0
  let oldest = 0
  let isResultWanted = false
  let ending: { failure?: { error: unknown } } | null = null

  if (signal?.aborted) forwardAbort()
  else signal?.addEventListener('abort', forwardAbort)
  const outcome = run()
  outcome.catch(() => {})

  return {
    events: { [Symbol.asyncIterator]: iterate },
    [Symbol.asyncIterator]: iterate,
    get result() {
      isResultWanted = true
      progress.ring()
      return outcome
    },
  }

  async function run(): Promise<R> {
    try {
      const result = await produce({ emit, ready, signal: abort.signal })
      ending = {}
      return result
    } catch (error) {
      ending = { failure: { error } }
      throw error
    } finally {
      signal?.removeEventListener('abort', forwardAbort)
      news.ring()
    }
  }

  function emit(event: E): void {
    if (ending) return
    kept.push(event)
    news.ring()
  }

  async function ready(): Promise<void> {
    while (readers.size > 0 && endOfKept() - oldest > maxUnread && !isResultWanted && !abort.signal.aborted) await progress.wait()
  }

  function iterate(): AsyncIterator<E, undefined> {
    const reader = { position: keptFrom }
    readers.add(reader)
    oldest = keptFrom
    return { next, return: leave }

    async function next(): Promise<IteratorResult<E, undefined>> {
      while (readers.has(reader)) {
        if (reader.position < endOfKept()) return { done: false, value: take() }
        if (!ending) {
          await news.wait()
          continue
        }
        readers.delete(reader)
        if (ending.failure) throw ending.failure.error
      }
      return { done: true, value: undefined }
    }

    function take(): E {
      const event = kept[reader.position - keptFrom] as E
      reader.position += 1
      letGo()
      return event
    }

    async function leave(): Promise<IteratorResult<E, undefined>> {
      readers.delete(reader)
      news.ring()
      const isAbandoned = readers.size === 0 && !ending && !isResultWanted
      if (isAbandoned) abort.abort()
      letGo()
      if (isAbandoned) await outcome.catch(() => {})
      return { done: true, value: undefined }
    }
  }

  /** Forgets what everybody has read. Not one by one: shifting a long backlog costs its whole length each time. */
  function letGo(): void {
    let slowest = endOfKept()
    for (const { position } of readers) slowest = Math.min(slowest, position)
    if (readers.size > 0) oldest = slowest
    const read = oldest - keptFrom
    if (read >= letGoAtLeast && read * 2 >= kept.length) {
      kept = kept.slice(read)
      keptFrom = oldest
    }
    progress.ring()
  }

  function endOfKept(): number {
    return keptFrom + kept.length
  }

  function forwardAbort(): void {
    abort.abort(signal?.reason)
    progress.ring()
  }
}

/** Wakes everybody who waits at the moment that it rings. */
function createBell(): { wait(): Promise<void>; ring(): void } {
  let waiting: (() => void)[] = []
  return {
    wait: () => new Promise(resolve => waiting.push(resolve)),
    ring: () => {
      if (waiting.length === 0) return
      const awoken = waiting
      waiting = []
      for (const wake of awoken) wake()
    },
  }
}
