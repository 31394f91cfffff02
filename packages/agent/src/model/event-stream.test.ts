import { getEventListeners } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { createEventStream, type EventSink } from './event-stream.ts'

describe('two views of one producer', () => {
  test('events and result come from one run of the producer', async () => {
    let runs = 0
    const stream = createEventStream<number, string>(async ({ emit }) => {
      runs += 1
      for (let event = 0; event < 3; event += 1) emit(event)
      return 'end'
    })
    expect(await all(stream.events)).toEqual([0, 1, 2])
    expect(await stream.result).toBe('end')
    expect(runs).toBe(1)
  })

  test('the result settles without an iterator, however many events there are', async () => {
    const stream = createEventStream(paced(10_000), { maxUnread: 10 })
    expect(await stream.result).toBe(10_000)
  })

  test('the events can be iterated without awaiting the result', async () => {
    expect(await all(createEventStream(paced(1000), { maxUnread: 10 }))).toHaveLength(1000)
  })

  test('the stream itself can be iterated', async () => {
    expect(await all(createEventStream(paced(3)))).toEqual([0, 1, 2])
  })

  test('events emitted before the first iterator was opened are not lost', async () => {
    const stream = createEventStream(paced(3))
    await stream.result
    expect(await all(stream.events)).toEqual([0, 1, 2])
  })

  test('the result settles when the producer throws at once, and so does every iterator', async () => {
    const stream = createEventStream<number, void>(() => {
      throw new Error('no')
    })
    const iterators = [all(stream.events), all(stream.events)]
    await expect(stream.result).rejects.toThrow('no')
    for (const iterated of iterators) await expect(iterated).rejects.toThrow('no')
  })

  test('an iterator receives the events before a failure, then the failure', async () => {
    const stream = createEventStream<number, void>(async ({ emit }) => {
      emit(1)
      throw new Error('no')
    })
    const received: number[] = []
    const listening = (async () => {
      for await (const event of stream) received.push(event)
    })()
    await expect(listening).rejects.toThrow('no')
    expect(received).toEqual([1])
  })

  test('a failure that is never awaited causes no unhandled rejection', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', note)
    try {
      const stream = createEventStream<number, void>(async () => Promise.reject(new Error('not awaited')))
      await stream.events[Symbol.asyncIterator]()
        .next()
        .catch(() => {})
      createEventStream<number, void>(async () => Promise.reject(new Error('not awaited')))
      await setImmediate()
      await setImmediate()
      expect(unhandled).toEqual([])
    } finally {
      process.off('unhandledRejection', note)
    }
  })
})

describe('readers', () => {
  test('each iterator has its own position and receives every event', async () => {
    const stream = createEventStream(paced(100))
    const [one, two] = await Promise.all([all(stream.events), all(stream)])
    expect(one).toEqual(two)
    expect(one).toHaveLength(100)
  })

  test('a slow iterator misses no event because of a quick one', async () => {
    const stream = createEventStream(paced(5000), { maxUnread: 10_000 })
    const slow = stream.events[Symbol.asyncIterator]()
    expect(await slow.next()).toEqual({ done: false, value: 0 })
    expect(await all(stream.events)).toEqual(Array.from({ length: 5000 }, (_, at) => at))
    expect(await rest(slow)).toEqual(Array.from({ length: 4999 }, (_, at) => at + 1))
  })

  test('several calls of next that are not awaited resolve in order', async () => {
    const iterator = createEventStream(paced(3))[Symbol.asyncIterator]()
    const results = await Promise.all([iterator.next(), iterator.next(), iterator.next(), iterator.next()])
    expect(results.map(({ value }) => value)).toEqual([0, 1, 2, undefined])
  })

  test('the stream drops the events that every iterator has read', async () => {
    const emitted: WeakRef<object>[] = []
    const stream = createEventStream<object, void>(async ({ emit, ready }) => {
      for (let at = 0; at < 10_000; at += 1) {
        const event = { at }
        emitted.push(new WeakRef(event))
        emit(event)
        await ready()
      }
    })
    const iterator = stream[Symbol.asyncIterator]()
    for (let at = 0; at < 9000; at += 1) await iterator.next()
    await setImmediate()
    collectGarbage()
    expect(emitted.filter(event => event.deref()).length).toBeLessThan(3000)
  })

  test('reading a long backlog takes linear time, not quadratic', async () => {
    const stream = createEventStream<number, void>(async ({ emit }) => {
      for (let at = 0; at < 300_000; at += 1) emit(at)
    })
    const before = process.cpuUsage()
    expect(await all(stream)).toHaveLength(300_000)
    // Of the processor, because the clock also counts what other processes do.
    expect(process.cpuUsage(before).user).toBeLessThan(5_000_000)
  })

  test('the producer waits for a reader that is behind, and continues when it has caught up', async () => {
    let emitted = 0
    const stream = createEventStream<number, void>(
      async ({ emit, ready }) => {
        for (; emitted < 100; emitted += 1) {
          emit(emitted)
          await ready()
        }
      },
      { maxUnread: 10 },
    )
    const iterator = stream[Symbol.asyncIterator]()
    await setImmediate()
    expect(emitted).toBe(10)
    for (let at = 0; at < 5; at += 1) await iterator.next()
    await setImmediate()
    expect(emitted).toBe(15)
    expect(await rest(iterator)).toHaveLength(95)
  })

  test('a request for the result lets the producer run ahead of a reader that has stopped', async () => {
    const stream = createEventStream(paced(1000), { maxUnread: 10 })
    const iterator = stream[Symbol.asyncIterator]()
    await iterator.next()
    expect(await stream.result).toBe(1000)
    expect(await rest(iterator)).toHaveLength(999)
  })
})

describe('stopping early', () => {
  test('a reader that stops early does not end a stream whose result was requested', async () => {
    const stream = createEventStream(paced(1000), { maxUnread: 10 })
    const { result } = stream
    for await (const _ of stream) break
    expect(await result).toBe(1000)
  })

  test('the last reader that stops early aborts a stream whose result was not requested, and waits for its end', async () => {
    let hasEnded = false
    const stream = createEventStream<number, string>(async sink => {
      sink.emit(0)
      await aborted(sink)
      await setImmediate()
      hasEnded = true
      return 'aborted'
    })
    for await (const _ of stream) break
    expect(hasEnded).toBe(true)
    expect(await stream.result).toBe('aborted')
  })

  test('a producer that waits for its reader is aborted when the reader stops early', async () => {
    const stream = createEventStream<number, boolean>(
      async ({ emit, ready, signal }) => {
        while (!signal.aborted) {
          emit(0)
          await ready()
        }
        return signal.aborted
      },
      { maxUnread: 3 },
    )
    const iterator = stream[Symbol.asyncIterator]()
    await iterator.next()
    await setImmediate()
    await iterator.return?.()
    expect(await stream.result).toBe(true)
  })

  test('a reader that stops early does not end the stream for another', async () => {
    const stream = createEventStream(paced(100))
    const staying = all(stream)
    for await (const _ of stream) break
    expect(await staying).toHaveLength(100)
  })

  test('a pending next resolves when its reader stops', async () => {
    const stream = createEventStream<number, void>(aborted)
    const iterator = stream[Symbol.asyncIterator]()
    const pending = iterator.next()
    await iterator.return?.()
    expect(await pending).toEqual({ done: true, value: undefined })
  })

  test('an abort of the caller reaches the producer, and the stream removes its listener', async () => {
    const abort = new AbortController()
    const stream = createEventStream<number, string>(
      async sink => {
        await aborted(sink)
        return String(sink.signal.reason)
      },
      { signal: abort.signal },
    )
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(1)
    abort.abort('enough')
    expect(await stream.result).toBe('enough')
    expect(getEventListeners(abort.signal, 'abort')).toEqual([])
  })

  test('a stream that ends by itself leaves no listener', async () => {
    const { signal } = new AbortController()
    await createEventStream(paced(3), { signal }).result
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
}

function paced(count: number) {
  return async ({ emit, ready }: EventSink<number>): Promise<number> => {
    for (let event = 0; event < count; event += 1) {
      emit(event)
      await ready()
    }
    return count
  }
}

function aborted({ signal }: EventSink<number>): Promise<void> {
  return new Promise(resolve => signal.addEventListener('abort', () => resolve()))
}

async function all<E>(events: AsyncIterable<E>): Promise<E[]> {
  const received: E[] = []
  for await (const event of events) received.push(event)
  return received
}

function rest<E>(iterator: AsyncIterator<E>): Promise<E[]> {
  return all({ [Symbol.asyncIterator]: () => iterator })
}
