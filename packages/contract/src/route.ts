/**
 * One operation of the API: its callers, what it takes, what it returns, and its sentence for people.
 *
 * The API registers, validates and guards an operation from its row, and describes it in the OpenAPI document from the same row. A row has no behaviour.
 */
import type { ErrorCode } from '@rivulet/protocol'

import { z } from 'zod'
import type { AuditAction, Scope, TokenRight } from './access/scopes.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** The callers of a route. A route without `token` takes no tokens. */
export type Access = {
  scope: Scope
  token?: TokenRight | readonly TokenRight[]
  /** The right that a token needs besides. */
  tokenAlso?: TokenRight
  /** The route is not about one task: it checks itself what the task of a token has to do with it. */
  checksTask?: boolean
  /** The token may also come as `?token=`: an EventSource cannot send headers. */
  tokenInQuery?: boolean
  /**
   * The route itself keeps to the agents of a key that is limited to some: it reads by `databaseFor(principal)`, and checks the agents that its body
   * names. The guard checks what a path names. Such a key gets 403 from a route with neither.
   */
  ofAgents?: true
  /** The status of responses that have what their caller sent: callers that may not read get those, too, without names and sizes of files. */
  echoes?: 200 | 201
}

/** A response that is not JSON. */
export type OtherContent = { description: string; content: Readonly<Record<string, { schema: z.ZodType }>> }

export type Terms = Omit<Access, 'scope'> & {
  /** Null: the route is public. */
  scope: Scope | null
  tag: string
  params?: z.ZodType
  query?: z.ZodType
  headers?: z.ZodType
  body?: z.ZodType
  /** The content types of a body that is not JSON. */
  consumes?: readonly string[]
  /** By status. */
  returns: Readonly<Record<number, z.ZodType | OtherContent>>
  /** The route accepts new work, which the API rejects when it has too much. */
  addsWork?: true
  /** Its response is written past Node's response object, so that a HEAD would get a body. */
  hasNoHead?: true
  /** The API serves it under any Host. */
  anyHost?: true
  /**
   * `kept`: a request that is repeated under its `Idempotency-Key` gets the response of the first one. `rejected`: the response has a secret, which the API
   * never stores. Without it, the header has no effect.
   */
  idempotencyKey?: 'kept' | 'rejected'
  /**
   * The entry of the audit log for what the call is for; several if the body decides, the usual one first. What an input does besides (cancel, rewind,
   * answer) the handler names itself.
   */
  audited?: AuditAction | readonly AuditAction[]
  /** The errors of this route. Those of its kind (with a body, with a scope, that adds work) are not repeated here. */
  errors?: readonly ErrorCode[]
  /** For people: what a call does. */
  doc: string
  /** For the reference, in Markdown: what else there is to know about the response. */
  note?: string
}

export type Route = Terms & { method: Method; path: string }

type Named<N> = N extends `${infer M extends Method} ${infer P}` ? { method: M; path: P } : never

/** @param name the method and the path, with its parameters as `:id` */
export function route<const N extends `${Method} /${string}`, const T extends Terms>(name: N, terms: T): T & Named<N> {
  const [method, path] = name.split(' ')
  return { ...terms, method, path } as T & Named<N>
}

/** An empty body means the defaults of a POST. To a change it may mean that everything goes. */
type SentBody<B, M> = M extends 'POST' ? (Partial<B> extends B ? [body?: B] : [body: B]) : [body: B]

/** Values of a URL, in which numbers are texts: a caller passes them as numbers. */
type SentQuery<Q extends z.ZodType, Value = z.output<Q>> = {
  [K in keyof z.input<Q>]: K extends keyof Value
    ? [Extract<Value[K], number>] extends [never]
      ? z.input<Q>[K]
      : number | undefined
    : z.input<Q>[K]
}

type PathArguments<P extends string, Values> = P extends `${string}:${infer Name}/${infer Rest}`
  ? [name: PathArgument<Name, Values>, ...PathArguments<Rest, Values>]
  : P extends `${string}:${infer Name}`
    ? [name: PathArgument<Name, Values>]
    : []
type PathArgument<Name, Values> = Name extends keyof Values ? (Values[Name] extends number ? number : string) : string

/** A call takes the parameters of its path, without the task that a handle is about, then its body or its query. */
export type ArgumentsOf<R extends Route> = [
  ...PathArguments<
    R['path'] extends `/v1/tasks/:id${infer Rest}` ? Rest : R['path'],
    R extends { params: infer P extends z.ZodType } ? z.output<P> : unknown
  >,
  ...(R extends { body: infer B extends z.ZodType }
    ? SentBody<NonNullable<z.input<B>>, R['method']>
    : R extends { query: infer Q extends z.ZodType }
      ? [query?: SentQuery<Q>]
      : []),
]

type BodyOf<R extends Route> = {
  [S in keyof R['returns']]: R['returns'][S] extends z.ZodType ? z.output<R['returns'][S]> : never
}[keyof R['returns']]
type IsUnion<T, Whole = T> = T extends Whole ? ([Whole] extends [T] ? false : true) : never

/** A call resolves with the body, or with its only field. */
export type ResultOf<R extends Route, Body = BodyOf<R>> = [Body] extends [null]
  ? Promise<void>
  : Promise<IsUnion<keyof Body> extends false ? Body[keyof Body] : Body>

export function pageOf<T extends z.ZodType, C extends z.ZodType = z.ZodString>(item: T, cursor?: C) {
  return z.object({ data: z.array(item), nextCursor: ((cursor ?? z.string()) as C).nullable() })
}

export const nothing = z.null()
