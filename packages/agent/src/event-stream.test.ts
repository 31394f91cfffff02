import { getEventListeners } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { createEventStream, type EventSink } from './event-stream.ts'

describe('two views of one producer', () => {
  test('[item 127] events and result come from one run of the producer', async () => {
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

  test('[item 128] the result settles though nobody iterates, however much is said', async () => {
    const stream = createEventStream(paced(10_000), { maxUnread: 10 })
    expect(await stream.result).toBe(10_000)
  })

  test('[item 128] the events can be iterated though nobody awaits the result', async () => {
    expect(await all(createEventStream(paced(1000), { maxUnread: 10 }))).toHaveLength(1000)
  })

  test('the stream itself can be iterated', async () => {
    expect(await all(createEventStream(paced(3)))).toEqual([0, 1, 2])
  })

  test('what was said before the first iterator came is not lost', async () => {
    const stream = createEventStream(paced(3))
    await stream.result
    expect(await all(stream.events)).toEqual([0, 1, 2])
  })

  test('[B48] the result settles when the producer throws at once, and so does every iterator', async () => {
    const stream = createEventStream<number, void>(() => {
      throw new Error('no')
    })
    const iterators = [all(stream.events), all(stream.events)]
    await expect(stream.result).rejects.toThrow('no')
    for (const iterated of iterators) await expect(iterated).rejects.toThrow('no')
  })

  test('[B48] what was said before a failure is heard before it', async () => {
    const stream = createEventStream<number, void>(async ({ emit }) => {
      emit(1)
      throw new Error('no')
    })
    const heard: number[] = []
    const listening = (async () => {
      for await (const event of stream) heard.push(event)
    })()
    await expect(listening).rejects.toThrow('no')
    expect(heard).toEqual([1])
  })

  test('[B48] a failure that nobody looks at is no unhandled rejection', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', note)
    try {
      const stream = createEventStream<number, void>(async () => Promise.reject(new Error('unheard')))
      await stream.events[Symbol.asyncIterator]()
        .next()
        .catch(() => {})
      createEventStream<number, void>(async () => Promise.reject(new Error('unheard')))
      await setImmediate()
      await setImmediate()
      expect(unhandled).toEqual([])
    } finally {
      process.off('unhandledRejection', note)
    }
  })
})

describe('readers', () => {
  test('[B49] each iterator has its own cursor and sees everything', async () => {
    const stream = createEventStream(paced(100))
    const [one, two] = await Promise.all([all(stream.events), all(stream)])
    expect(one).toEqual(two)
    expect(one).toHaveLength(100)
  })

  test('[B49] a slow iterator loses nothing to a quick one', async () => {
    const stream = createEventStream(paced(5000), { maxUnread: 10_000 })
    const slow = stream.events[Symbol.asyncIterator]()
    expect(await slow.next()).toEqual({ done: false, value: 0 })
    expect(await all(stream.events)).toEqual(Array.from({ length: 5000 }, (_, at) => at))
    expect(await rest(slow)).toEqual(Array.from({ length: 4999 }, (_, at) => at + 1))
  })

  test('several calls of next that are not awaited are answered in order', async () => {
    const iterator = createEventStream(paced(3))[Symbol.asyncIterator]()
    const answers = await Promise.all([iterator.next(), iterator.next(), iterator.next(), iterator.next()])
    expect(answers.map(({ value }) => value)).toEqual([0, 1, 2, undefined])
  })

  test('[B50] what everybody has read is let go', async () => {
    const said: WeakRef<object>[] = []
    const stream = createEventStream<object, void>(async ({ emit, ready }) => {
      for (let at = 0; at < 10_000; at += 1) {
        const event = { at }
        said.push(new WeakRef(event))
        emit(event)
        await ready()
      }
    })
    const iterator = stream[Symbol.asyncIterator]()
    for (let at = 0; at < 9000; at += 1) await iterator.next()
    await setImmediate()
    collectGarbage()
    expect(said.filter(event => event.deref()).length).toBeLessThan(3000)
  })

  test('[B50] a long backlog is read in time that grows with its length, not with its square', async () => {
    const stream = createEventStream<number, void>(async ({ emit }) => {
      for (let at = 0; at < 300_000; at += 1) emit(at)
    })
    const begin = performance.now()
    expect(await all(stream)).toHaveLength(300_000)
    expect(performance.now() - begin).toBeLessThan(5_000)
  })

  test('the producer waits for a reader who is behind, and goes on when it has caught up', async () => {
    let said = 0
    const stream = createEventStream<number, void>(
      async ({ emit, ready }) => {
        for (; said < 100; said += 1) {
          emit(said)
          await ready()
        }
      },
      { maxUnread: 10 },
    )
    const iterator = stream[Symbol.asyncIterator]()
    await setImmediate()
    expect(said).toBe(10)
    for (let at = 0; at < 5; at += 1) await iterator.next()
    await setImmediate()
    expect(said).toBe(15)
    expect(await rest(iterator)).toHaveLength(95)
  })

  test('[item 128] asking for the result lets the producer run ahead of a reader who has stopped', async () => {
    const stream = createEventStream(paced(1000), { maxUnread: 10 })
    const iterator = stream[Symbol.asyncIterator]()
    await iterator.next()
    expect(await stream.result).toBe(1000)
    expect(await rest(iterator)).toHaveLength(999)
  })
})

describe('leaving', () => {
  test('[item 73] a reader who leaves does not end a stream whose result is wanted', async () => {
    const stream = createEventStream(paced(1000), { maxUnread: 10 })
    const { result } = stream
    for await (const _ of stream) break
    expect(await result).toBe(1000)
  })

  test('[B52] the last reader who leaves early aborts a stream whose result nobody wants, and waits for its end', async () => {
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

  test('[B52] a producer that waits for its reader hears of it when the reader leaves', async () => {
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

  test('[B52] a reader who leaves does not end the stream for another', async () => {
    const stream = createEventStream(paced(100))
    const staying = all(stream)
    for await (const _ of stream) break
    expect(await staying).toHaveLength(100)
  })

  test('a pending next ends when its reader leaves', async () => {
    const stream = createEventStream<number, void>(aborted)
    const iterator = stream[Symbol.asyncIterator]()
    const pending = iterator.next()
    await iterator.return?.()
    expect(await pending).toEqual({ done: true, value: undefined })
  })

  test('[B52] an abort of the caller reaches the producer, and its listener is taken off again', async () => {
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

  test('[B52] a stream that ends by itself leaves no listener behind', async () => {
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
  const heard: E[] = []
  for await (const event of events) heard.push(event)
  return heard
}

function rest<E>(iterator: AsyncIterator<E>): Promise<E[]> {
  return all({ [Symbol.asyncIterator]: () => iterator })
}
