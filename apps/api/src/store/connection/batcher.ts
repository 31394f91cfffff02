/**
 * Batches concurrent calls: while one batch is in flight, the next one collects. So batches grow with the load, and a call without load does not
 * wait. If a batch fails, all its calls fail.
 */
export type Batcher<T, R> = (item: T) => Promise<R>

/** `ask` returns a result for each item, in order. */
export function createBatcher<T, R>(most: number, ask: (items: readonly T[]) => Promise<readonly R[]>): Batcher<T, R> {
  const waiting: Waiting<T, R>[] = []
  let isAsking = false
  return item =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (!isAsking) void askAll()
    })

  async function askAll(): Promise<void> {
    isAsking = true
    // Those of the same tick come along.
    await null
    while (waiting.length > 0) {
      const batch = waiting.splice(0, most)
      try {
        const results = await ask(batch.map(({ item }) => item))
        for (const [i, { resolve }] of batch.entries()) resolve(results[i] as R)
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    isAsking = false
  }
}

type Waiting<T, R> = { item: T; resolve: (result: R) => void; reject: (error: unknown) => void }
