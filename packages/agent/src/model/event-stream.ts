/**
 * One producer, two views: its events, for any number of iterators, and its result. The result always settles; its rejection is never unhandled.
 *
 * Each iterator has its own position. Events that all iterators have read are dropped, so a late iterator starts at the oldest one still kept.
 * The producer waits for the slowest iterator, so it does not fill memory, until the caller reads `result`: then it runs to its end regardless.
 * When the last iterator stops early and `result` was never read, the producer's signal is aborted.
 */
export type EventStream<E, R> = AsyncIterable<E> & {
  readonly events: AsyncIterable<E>
  readonly result: Promise<R>
}

export type EventSink<E> = {
  emit(event: E): void
  /** Resolves when the slowest reader is at most `maxUnread` events behind. */
  ready(): Promise<void>
  /** Resolves when every reader has read everything and asks for more, so that what the producer does next comes after it. */
  settled(): Promise<void>
  /** Fires when the caller aborts, and when the last reader stops early without a request for the result. */
  readonly signal: AbortSignal
}

export type EventStreamOptions = {
  signal?: AbortSignal | undefined
  /** `ready` waits while the slowest iterator has more unread events than this. Default 256. */
  maxUnread?: number
}

const dropAtLeast = 1024

export function createEventStream<E, R>(
  produce: (sink: EventSink<E>) => Promise<R>,
  { signal, maxUnread = 256 }: EventStreamOptions = {},
): EventStream<E, R> {
  const abort = new AbortController()
  const readers = new Set<{ position: number; isIdle: boolean }>()
  const news = createBell()
  const progress = createBell()
  // Positions count from the first event of the stream: `kept[0]` has position `keptFrom`, and all readers have read those before `oldest`.
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
      const result = await produce({ emit, ready, settled, signal: abort.signal })
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

  async function settled(): Promise<void> {
    const isBusy = () => Array.from(readers).some(({ position, isIdle }) => position < endOfKept() || !isIdle)
    while (isBusy() && !isResultWanted && !abort.signal.aborted) await progress.wait()
  }

  function iterate(): AsyncIterator<E, undefined> {
    const reader = { position: keptFrom, isIdle: false }
    readers.add(reader)
    oldest = keptFrom
    return { next, return: leave }

    async function next(): Promise<IteratorResult<E, undefined>> {
      while (readers.has(reader)) {
        if (reader.position < endOfKept()) return { done: false, value: take() }
        if (!ending) {
          reader.isIdle = true
          progress.ring()
          await news.wait()
          reader.isIdle = false
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
      dropRead()
      return event
    }

    async function leave(): Promise<IteratorResult<E, undefined>> {
      readers.delete(reader)
      news.ring()
      const isAbandoned = readers.size === 0 && !ending && !isResultWanted
      if (isAbandoned) abort.abort()
      dropRead()
      if (isAbandoned) await outcome.catch(() => {})
      return { done: true, value: undefined }
    }
  }

  /** Drops events that all readers have read, many at a time: removing one from the front of a long array costs its whole length. */
  function dropRead(): void {
    let slowest = endOfKept()
    for (const { position } of readers) slowest = Math.min(slowest, position)
    if (readers.size > 0) oldest = slowest
    const read = oldest - keptFrom
    if (read >= dropAtLeast && read * 2 >= kept.length) {
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

/** `ring` resolves every `wait` that is pending at that moment. */
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
