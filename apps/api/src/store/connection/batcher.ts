/**
 * Batches concurrent calls: while one batch is in flight, the next one collects. So batches grow with the load, and a call without load does not
 * wait. If a batch fails, all its calls fail.
 */
import type { TurnId } from '@rivulet/protocol'
import { isConnectionBroken, sqlStateOf } from './database-errors.ts'

export type Batcher<T, R> = (item: T) => Promise<R>

/** `ask` returns a result for each item, in order. The next batch does not wait for results that are promises. */
export function createBatcher<T, R>(most: number, ask: (items: readonly T[]) => Promise<readonly (R | Promise<R>)[]>): Batcher<T, R> {
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
        for (const [i, { resolve }] of batch.entries()) resolve(results[i] as R | Promise<R>)
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    isAsking = false
  }
}

/**
 * Batches concurrent transactions, each about one turn. What a batch left out, with null, is done alone; so is each of a batch that Postgres refused, because
 * one of them may be the reason, and the second of two about the same turn.
 */
export function createTogether<T extends { turnId: TurnId }, R>(
  most: number,
  transact: (items: readonly T[]) => Promise<readonly (R | null)[]>,
): Batcher<T, R | null> {
  return createBatcher(most, async items => {
    if (items.length === 1) return transact(items)
    const together = [...new Map(items.toReversed().map(item => [item.turnId, item])).values()]
    const done = await transact(together).catch(error => {
      if (sqlStateOf(error) === undefined || isConnectionBroken(error)) throw error
      return []
    })
    const results = new Map(together.map((item, i) => [item, done[i]]))
    return items.map(item => results.get(item) ?? alone(item))
  })

  async function alone(item: T): Promise<R | null> {
    const [result = null] = await transact([item])
    return result
  }
}

type Waiting<T, R> = { item: T; resolve: (result: R | Promise<R>) => void; reject: (error: unknown) => void }
