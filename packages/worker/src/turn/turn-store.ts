/** Memory above the task: values that the turns of one customer, one agent or one tenant share. */
import { randomUUID } from 'node:crypto'
import type { StoreCallInput, StoreCallResult, StoredValue, TurnScope } from '@rivulet/contract/store'
import type { Json, JsonObject } from '@rivulet/protocol'

/** With `version`, the change is made only if the value has this version; 0: only if there is no value. Otherwise it throws `precondition_failed`. */
export type StoreChange = { version?: number }
export type StoreSearch = { prefix?: string; limit?: number; cursor?: string }
export type StorePage = { data: StoredValue[]; nextCursor: string | null }

/** A change is stored at once, also if the turn fails later, and an attempt that follows makes it again. */
export type TurnStore = {
  /** Null if there is no value under this key. */
  get<T = Json>(scope: TurnScope, key: string): Promise<(Omit<StoredValue, 'value'> & { value: T }) | null>
  put(scope: TurnScope, key: string, value: Json, change?: StoreChange): Promise<StoredValue>
  /** Merges an object into the value (RFC 7396). */
  patch(scope: TurnScope, key: string, patch: JsonObject, change?: StoreChange): Promise<StoredValue>
  remove(scope: TurnScope, key: string, change?: StoreChange): Promise<void>
  /** By key, 20 at a time by default. */
  list(scope: TurnScope, search?: StoreSearch): Promise<StorePage>
  /** The values with these words in their texts, their names or their key. */
  search(scope: TurnScope, q: string, search?: StoreSearch): Promise<StorePage>
}

/** Asks the server about the scopes of this turn. */
export type UseStore = (call: StoreCallInput) => Promise<StoreCallResult>

export function createTurnStore(use: UseStore): TurnStore {
  return {
    get: async <T>(scope: TurnScope, key: string) => storedIn<T>(await use({ action: 'get', scope, key })),
    put: async (scope, key, value, change) =>
      requireStored(await use({ action: 'put', scope, key, value, ...change, change: randomUUID() })),
    patch: async (scope, key, patch, change) =>
      requireStored(await use({ action: 'patch', scope, key, value: patch, ...change, change: randomUUID() })),
    remove: async (scope, key, change) => void (await use({ action: 'remove', scope, key, ...change })),
    list: async (scope, search) => pageIn(await use({ action: 'list', scope, ...search })),
    search: async (scope, q, search) => pageIn(await use({ action: 'list', scope, q, ...search })),
  }
}

function storedIn<T = Json>(result: StoreCallResult) {
  if (!('stored' in result)) throw new Error('The server returned a page in place of a value')
  return result.stored as (Omit<StoredValue, 'value'> & { value: T }) | null
}

function requireStored(result: StoreCallResult): StoredValue {
  const stored = storedIn(result)
  if (!stored) throw new Error('The server returned no stored value')
  return stored
}

function pageIn(result: StoreCallResult): StorePage {
  if (!('data' in result)) throw new Error('The server returned a value in place of a page')
  return result
}
