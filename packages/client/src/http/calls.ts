/** The calls that are one request each, from the rows of the contract. A call that is more is a method of its own, over one of these. */
import { type Calls, calls } from '../generated/calls.ts'
import type { Call, CallOptions, Http } from './http.ts'
import { partOf } from './path-of.ts'
import { readFields, readNothing } from './responses.ts'

/** @param ids of the path, which all calls share: the task */
export function callsOf<N extends keyof Calls>(http: Http, noun: N, ...ids: readonly string[]): Calls[N] {
  return Object.fromEntries(Object.entries(calls[noun]).map(([name, row]) => [name, callOf(http, row, ids)])) as Calls[N]
}

/** A row is the method, the path, the name of what it takes, and the fields of what it returns; `-` stands for nothing. */
function callOf({ call }: Http, row: string, ids: readonly string[]) {
  const [method = '', path = '', input = '', ...fields] = row.split(' ')
  // The API stores no secret, so it cannot repeat the response under an Idempotency-Key.
  const once = row.includes(' secret') && { idempotencyKey: null, retries: 0 }
  return async (...given: readonly unknown[]) => {
    const values = [...ids, ...given]
    return call({
      method: method as NonNullable<Call<unknown>['method']>,
      path: path.replace(/:\w+/g, () => partOf(String(values.shift()))),
      ...(input !== '-' && { [input]: values.shift() ?? (method === 'POST' ? {} : undefined) }),
      ...once,
      ...(values[0] as CallOptions),
      read: fields[0] === '-' ? readNothing : readFields(fields.join(' ')),
    })
  }
}
