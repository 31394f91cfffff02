/**
 * The messages of one stream of updates. The stream numbers them as it likes: an index gets the next place of the turn when its message opens, whatever the
 * turn has sent before, so streams and other output never meet.
 */
import type { Update } from '@rivulet/protocol'
import type { TurnWriter } from './turn-writer.ts'

type StreamPlaces = {
  write(update: Update): Promise<void>
  /** Where its messages are in the turn, in the order in which they opened. */
  indexes(): number[]
}

export function createStreamPlaces(writer: TurnWriter): StreamPlaces {
  const places = new Map<number, number>()
  return { write, indexes: () => [...places.values()] }

  function write(update: Update): Promise<void> {
    // The writer rejects what is no update.
    if (update?.index === undefined || !Number.isInteger(update.index) || update.index < 0) return writer.write(update)
    const known = places.get(update.index)
    if (update.type === 'done' && known === undefined) return Promise.resolve()
    const place = known ?? writer.nextIndex()
    const written = writer.write({ ...update, index: place })
    // A delta without text opens no message, so the index stays free.
    if (known === undefined && writer.nextIndex() > place) places.set(update.index, place)
    return written
  }
}
