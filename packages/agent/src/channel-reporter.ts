/**
 * An observer that hands updates on to whoever has more to do with them than a run should wait for: another system, a database, a slow page.
 *
 * The run is never blocked. The reader gets every update in order; one that falls further behind than `capacity` gets what was kept and then
 * an error, never a silent hole. A reader that leaves harms nobody. For one run: it ends with it.
 */
import { RivuletError, type Update } from '@rivulet/protocol'
import { createEventStream } from './event-stream.ts'
import type { Observer } from './observers.ts'

export type ChannelReporter = Observer & AsyncIterable<Update>

export function channelReporter({ capacity = 10_000 }: { capacity?: number } = {}): ChannelReporter {
  let send: (update: Update) => void = () => {}
  let finish: (error?: RivuletError) => void = () => {}
  let waiting = 0
  const updates = createEventStream<Update, void>(
    ({ emit, signal }) =>
      new Promise((resolve, reject) => {
        send = emit
        finish = error => (error ? reject(error) : resolve())
        signal.addEventListener('abort', () => resolve(), { once: true })
      }),
  )
  return { update, end: () => finish(), [Symbol.asyncIterator]: iterate }

  function update(given: Update): void {
    waiting += 1
    if (waiting > capacity) finish(new RivuletError('stream_backpressure', `A reporter's reader fell more than ${capacity} updates behind`))
    else send(given)
  }

  async function* iterate(): AsyncGenerator<Update, void, void> {
    for await (const given of updates) {
      waiting -= 1
      yield given
    }
  }
}
