/**
 * Batches concurrent calls: while one batch is in flight, the next one collects. So batches grow with the load, and a call without load does not
 * wait. A batch that takes longer than `patienceMs`, a second by default, delays no other. If a batch fails, all its calls fail.
 */
import { isHeldUp, sqlStateOf } from './database-errors.ts'
import type { Tenant } from './tenant.ts'

export type Batcher<T, R> = (item: T) => Promise<R>

/** `ask` returns a result for each item, in order. A result may be a promise, for which no batch waits. */
export function createBatcher<T, R>(
  most: number,
  ask: (items: readonly T[]) => Promise<readonly (R | Promise<R>)[]>,
  patienceMs = 1_000,
): Batcher<T, R> {
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
    while (waiting.length > 0) await atMost(patienceMs, askFor(waiting.splice(0, most)))
    isAsking = false
  }

  async function askFor(batch: readonly Waiting<T, R>[]): Promise<void> {
    try {
      const results = await ask(batch.map(({ item }) => item))
      for (const [i, { resolve }] of batch.entries()) resolve(results[i] as R | Promise<R>)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}

/**
 * Batches concurrent transactions that hold rows. A batch waits for no row: what it left out, with undefined, is done alone, and waits there. So is the second
 * of two with the same key, and each of a batch that Postgres refused for a reason that one of them can have.
 */
export function createTransactionBatcher<T, R>(
  most: number,
  keyOf: (item: T) => string,
  transact: (items: readonly T[], how: { isAlone: boolean }) => Promise<readonly (R | undefined)[]>,
): Batcher<T, R> {
  return createBatcher(most, async items => {
    const firsts = [...new Map(items.toReversed().map(item => [keyOf(item), item])).values()]
    const done = await transact(firsts, { isAlone: false }).catch(error => {
      if (!isRefusedForOne(error)) throw error
      return []
    })
    const results = new Map(firsts.map((item, i) => [item, done[i]]))
    return items.map(item => {
      const result = results.get(item)
      return result === undefined ? alone(item) : result
    })
  })

  async function alone(item: T): Promise<R> {
    const [result] = await transact([item], { isAlone: true })
    return result as R
  }
}

/** One for each tenant, because a statement sees the rows of one. There are as many tenants as operators created keys for. */
export function batcherPerTenant<T, R>(create: (tenant: Tenant) => Batcher<T, R>): (tenant: Tenant) => Batcher<T, R> {
  const batchers = new Map<Tenant, Batcher<T, R>>()
  return tenant => {
    const batcher = batchers.get(tenant) ?? create(tenant)
    batchers.set(tenant, batcher)
    return batcher
  }
}

/** Whether one transaction of a batch may be the reason why Postgres refused all of it. 22, 23 and 54: values, and rows that contradict others. */
function isRefusedForOne(error: unknown): boolean {
  return isHeldUp(error) || /^(22|23|54)/.test(sqlStateOf(error) ?? '')
}

async function atMost(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, late])
  clearTimeout(timer)
}

type Waiting<T, R> = { item: T; resolve: (result: R | Promise<R>) => void; reject: (error: unknown) => void }
