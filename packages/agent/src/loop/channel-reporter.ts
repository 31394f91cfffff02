/**
 * An observer that queues updates for a slow consumer: another system, a database, a slow page.
 *
 * It never blocks the run. The reader receives every update in order. A reader that falls more than `capacity` updates behind receives the
 * queued ones and then an error, so no update is skipped silently. A reader that stops early does not affect the run. Use one per run.
 */
import { RivuletError, type Update } from '@rivulet/protocol'
import { createEventStream } from '../model/event-stream.ts'
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
    if (waiting > capacity)
      finish(new RivuletError('stream_backpressure', `The reader of channelReporter fell more than ${capacity} updates behind (capacity)`))
    else send(given)
  }

  async function* iterate(): AsyncGenerator<Update, void, void> {
    for await (const given of updates) {
      waiting -= 1
      yield given
    }
  }
}
