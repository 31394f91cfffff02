/** A run of another framework as updates: each part of its stream is read at once, and the updates that it becomes are yielded before the next one. */
import { type Json, toStorableJson, type Update } from '@rivulet/protocol'

export type PartReader<P> = {
  /** Returns whether the run is over: nothing after that is read. */
  read(part: P): boolean
  /** The stream has ended by itself. */
  end(): void
  /** The stream has failed: what was held back is emitted before the error, and the caller closes what is open. */
  settle(): void
}

export async function* updatesOf<P>(
  parts: AsyncIterable<P>,
  createReader: (emit: (update: Update) => void) => PartReader<P>,
): AsyncGenerator<Update, void, void> {
  let updates: Update[] = []
  const reader = createReader(update => updates.push(update))
  try {
    for await (const part of parts) {
      const isOver = reader.read(part)
      yield* updates
      updates = []
      if (isOver) return
    }
  } catch (error) {
    reader.settle()
    yield* updates
    throw error
  }
  reader.end()
  yield* updates
}

/** A framework's values are normally JSON; any other value becomes its text. */
export function jsonOf(value: unknown): Json {
  try {
    return toStorableJson(value ?? null, 60)
  } catch {
    return String(value)
  }
}
