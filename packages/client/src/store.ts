/** Memory above the tasks: values by scope and key. A scope is `tenant`, `agent:<name>`, or `customer:<key>`. */
import type { StoredValue } from '@rivulet/contract/store'
import type { Json, JsonObject } from '@rivulet/protocol'
import { type CallOptions, type Http, randomKey } from './http/http.ts'
import { pathOf } from './http/path-of.ts'
import { type Page, readBody, readNothing, readPage } from './http/responses.ts'

/** `q` finds words in the texts and names of a value, and parts of its key. */
export type StoreQuery = { prefix?: string | undefined; q?: string | undefined; limit?: number | undefined; cursor?: string | undefined }

/** With `version`, the change is made only if the value has this version; 0: only if there is no value. Otherwise it rejects with `precondition_failed`. */
export type StoreChangeOptions = CallOptions & { version?: number | undefined }

export type StoreCalls = {
  /** Rejects with `not_found` if there is no value under this key. */
  get(scope: string, key: string, options?: CallOptions): Promise<StoredValue>
  put(scope: string, key: string, value: Json, options?: StoreChangeOptions): Promise<StoredValue>
  /** Merges an object into the value (RFC 7396). */
  patch(scope: string, key: string, patch: JsonObject, options?: StoreChangeOptions): Promise<StoredValue>
  remove(scope: string, key: string, options?: StoreChangeOptions): Promise<void>
  /** By key. */
  list(scope: string, query?: StoreQuery, options?: CallOptions): Promise<Page<StoredValue>>
  /** Removes all values of the scope. */
  clear(scope: string, options?: CallOptions): Promise<void>
}

export function createStoreCalls({ call }: Http): StoreCalls {
  const read = readBody<StoredValue>('report')
  return {
    get: (scope, key, own) => call({ path: pathOf('store', scope, key), ...own, read }),
    put: (scope, key, value, own) => change('PUT', pathOf('store', scope, key), value, own),
    patch: (scope, key, patch, own) => change('PATCH', pathOf('store', scope, key), patch, own),
    remove: (scope, key, own) => call({ method: 'DELETE', path: pathOf('store', scope, key), ...termsOf(own), read: readNothing }),
    list: (scope, query, own) => call({ path: pathOf('store', scope), query, ...own, read: readPage<StoredValue>('report') }),
    clear: (scope, own) => call({ method: 'DELETE', path: pathOf('store', scope), ...own, read: readNothing }),
  }

  /** With a key, by which the API knows a change that is sent again because no response came. */
  function change(method: 'PUT' | 'PATCH', path: string, value: Json, own?: StoreChangeOptions): Promise<StoredValue> {
    return call({ method, path, body: { value }, idempotencyKey: randomKey(), ...termsOf(own), read })
  }
}

function termsOf({ version, ...own }: StoreChangeOptions = {}) {
  return { ...own, ...(version !== undefined && { ifMatch: `"${version}"` }) }
}
