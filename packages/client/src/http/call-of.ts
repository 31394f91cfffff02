/** The type of a call, from its row in the contract. */
import type { ArgumentsOf, ResultOf, Route } from '@rivulet/contract/route'
import type { Call, CallOptions } from './http.ts'

type Options<R> = CallOptions &
  (R extends { idempotencyKey: 'kept' } ? { idempotencyKey?: string } : unknown) &
  (R extends { headers: unknown } ? Pick<Call<unknown>, 'ifMatch' | 'idempotencyKey'> : unknown)

export type CallOf<R extends Route> = (...given: [...ArgumentsOf<R>, options?: Options<R>]) => ResultOf<R>

export type QueryOf<C> = C extends (query?: infer Q, options?: never) => unknown ? NonNullable<Q> : never
