/** Memory above the tasks: values by scope and key. A scope is `tenant`, `agent:<name>`, or `customer:<key>`. */
import type { StoredValue } from '@rivulet/contract/store'
import type { Json, JsonObject } from '@rivulet/protocol'
import type { Calls } from './generated/calls.ts'
import { callsOf } from './http/calls.ts'
import { type CallOptions, type Http, randomKey } from './http/http.ts'

/** With `version`, the change is made only if the value has this version; 0: only if there is no value. Otherwise it rejects with `precondition_failed`. */
type StoreChangeOptions = CallOptions & { version?: number | undefined }

export type StoreCalls = Omit<Calls['store'], 'put' | 'patch' | 'remove'> & {
  put(scope: string, key: string, value: Json, options?: StoreChangeOptions): Promise<StoredValue>
  /** Merges an object into the value (RFC 7396). */
  patch(scope: string, key: string, patch: JsonObject, options?: StoreChangeOptions): Promise<StoredValue>
  remove(scope: string, key: string, options?: StoreChangeOptions): Promise<void>
}

export function createStoreCalls(http: Http): StoreCalls {
  const calls = callsOf(http, 'store')
  return {
    ...calls,
    put: (scope, key, value, own) => calls.put(scope, key, { value }, changeOf(own)),
    patch: (scope, key, value, own) => calls.patch(scope, key, { value }, changeOf(own)),
    remove: (scope, key, own) => calls.remove(scope, key, termsOf(own)),
  }
}

/** With a key, by which the API knows a change that is sent again because no response came. */
function changeOf(own?: StoreChangeOptions) {
  return { idempotencyKey: randomKey(), ...termsOf(own) }
}

function termsOf({ version, ...own }: StoreChangeOptions = {}) {
  return { ...own, ...(version !== undefined && { ifMatch: `"${version}"` }) }
}
